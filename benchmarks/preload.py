"""What the fork server imports once, so that no run pays for it. The queues are not among it."""

import benchmarks.crew
import benchmarks.items  # noqa: F401
