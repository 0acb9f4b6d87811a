"""Recording: a queue to Parquet files and back, each position once, without Spark. Needs queueduct[arrow]."""

import queueduct.arrow  # noqa: F401  # it says how to install pyarrow
from queueduct.recording.reading import Recording
from queueduct.recording.recorder import STOPPED, TIME_IS_UP, Recorded, record
from queueduct.recording.replaying import Replayed, create_for, replay

__all__ = ["STOPPED", "TIME_IS_UP", "Recorded", "Recording", "Replayed", "create_for", "record", "replay"]
