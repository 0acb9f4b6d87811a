"""Recording: a queue to Parquet files and back, each position once, without Spark. Needs queueduct[arrow]."""

import queueduct.arrow  # noqa: F401  # it says how to install pyarrow
from queueduct.recording.recorder import TIME_IS_UP, Recorded, record

__all__ = ["TIME_IS_UP", "Recorded", "record"]
