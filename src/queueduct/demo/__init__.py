"""The main job, live: producers put ticks into a queue, Spark archives them and makes candles of them.

::

    4 producers ──► EventQueue "ticks" ──► Spark ──► Parquet archive
                                             └─────► EventQueue "candles" ──► shown live

At the end every tick is accounted for, by symbol: what was put, what is in the archive, what is in the candles.
"""
