"""A log as columns: what a reader gets, what it leaves, and what Arrow's consumers see of it."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pyarrow as pa
import pytest

import queueduct
from queueduct import DataLost, EventQueue, QueueClosed, ShutDown
from queueduct.arrow import get_table, schema_of

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("n", "i8")])


def ticks(start, stop):
    records = np.zeros(stop - start, TICK)
    records["n"] = np.arange(start, stop)
    records["px"] = records["n"] / 2
    records["sym"] = np.resize([b"", b"A", b"ACMECORP"], stop - start)
    return records


def log(name="ticks", count=1000, **options):
    queue = EventQueue.create(name, item=TICK, **options)
    queue.put_many(ticks(0, count))
    return queue


def numbers(table):
    return table.column("n").to_pylist()


def test_a_reader_gets_what_is_there_and_moves_past_it():
    with log() as queue, queue.subscribe(start="earliest") as reader:
        table = reader.to_arrow()
        table.validate(full=True)
        assert table.schema == schema_of(TICK)
        assert table.to_pylist()[1] == {"sym": "A", "px": 0.5, "n": 1}
        assert numbers(table) == list(range(1000))
        assert reader.position == 1000
        assert reader.to_arrow().num_rows == 0
        queue.put_many(ticks(1000, 1003))
        assert numbers(reader.to_arrow(max_items=2)) == [1000, 1001]
        assert reader.get()["n"] == 1002


@pytest.mark.parametrize("on_full", ["wait", "drop_slowest"])
def test_chunks_of_all_sizes_become_one_table(on_full):
    with log(count=100_000, on_full=on_full, first_items=4, chunk_bytes=1 << 16) as queue:
        reader = queue.subscribe(start=3)
        assert numbers(reader.to_arrow(99_990)) == list(range(3, 99_993))
        assert numbers(reader.to_arrow()) == list(range(99_993, 100_000))


def test_what_a_reader_got_makes_room():
    with log(count=0, on_full="raise", max_bytes=1 << 18, chunk_bytes=1 << 14) as queue:
        reader = queue.subscribe()
        for _ in range(3):
            assert queue.put_many(ticks(0, 100_000)) > 1000
            with pytest.raises(queueduct.Full):
                queue.put_many(ticks(0, 1000))
            assert reader.to_arrow().num_rows > 1000


def test_a_durable_reader_goes_on_where_it_committed():
    with log() as queue:
        with queue.subscribe("lake", start="earliest") as reader:
            reader.to_arrow(100)
            reader.commit()
            reader.to_arrow(100)
        with queue.subscribe("lake") as reader:
            assert numbers(reader.to_arrow(1)) == [100]


def test_a_reader_waits_for_the_first_item_only():
    with log(count=0) as queue, queue.subscribe() as reader:
        assert reader.to_arrow(timeout=0.01).num_rows == 0
        putter = threading.Timer(0.05, queue.put_many, [ticks(0, 5)])
        putter.start()
        assert numbers(reader.to_arrow(timeout=60)) == [0, 1, 2, 3, 4]
        putter.join()
        queue.shutdown()
        with pytest.raises(ShutDown):
            reader.to_arrow()
        assert pa.table(reader).num_rows == 0


def test_bytes_are_one_column_and_objects_are_refused():
    with EventQueue.create("lines", item=bytes) as queue:
        queue.put_many([b"a", b"\xff\0", b""])
        reader = queue.subscribe(start="earliest")
        assert reader.to_arrow(2).to_pylist() == [{"value": b"a"}, {"value": b"\xff\0"}]
        assert pa.table(reader).to_pylist() == [{"value": b""}]
        assert queue.read_arrow(1, 3).column("value").to_pylist() == [b"\xff\0", b""]
    for queue in (EventQueue.create("objects", item=object), EventQueue()):
        queue.put("anything")
        reader = queue.subscribe(start="earliest")
        for call in (reader.to_arrow, reader.__arrow_c_stream__, reader.__arrow_c_schema__, queue.__arrow_c_stream__):
            with pytest.raises(TypeError, match="item=object"):
                call()
        with pytest.raises(TypeError, match="item=object"):
            queue.read_arrow(0, 1)
        with pytest.raises(TypeError, match="item=object"):
            queue.put_arrow(pa.table({"a": [1]}))
        assert reader.get() == "anything"


def test_a_range_of_positions_is_read_as_a_table():
    with log() as queue:
        assert numbers(queue.read_arrow(10, 20)) == list(range(10, 20))
        assert queue.read_arrow(10, 10).schema == schema_of(TICK)
        with pytest.raises(ValueError, match="up to the end, 1000: start=0, stop=1152921504606846976"):
            queue.read_arrow(0, 1 << 60)
        queue.keep_last(0)
        with pytest.raises(DataLost, match="no longer kept"):
            queue.read_arrow(0, 10)


def test_a_value_without_a_column_leaves_the_reader_where_it_is():
    with log(count=3) as queue:
        queue.put((b"\xff", 1.0, 3))
        reader = queue.subscribe(start="earliest")
        for _ in range(2):
            with pytest.raises(ValueError, match=r"'sym' is not UTF-8: b'\\xff', at position 3; .*strings=binary"):
                reader.to_arrow()
        with pytest.raises(Exception, match=r"'sym' is not UTF-8: b'\\xff', at position 3"):
            pa.table(reader)
        assert reader.position == 0
        assert reader.to_arrow(strings="binary").column("sym").to_pylist() == [b"", b"A", b"ACMECORP", b"\xff"]
        reader = queue.subscribe(start="earliest")
        binary = schema_of(TICK, strings="binary")
        assert pa.table(reader, schema=binary).column("sym")[3].as_py() == b"\xff"


def test_a_handler_that_raises_loses_no_item():
    """The alarm comes at any moment of the call; what it interrupts is there again."""

    class Rang(Exception):
        pass

    is_armed = False

    def ring(*_):
        if is_armed:
            raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    tables, tries, rings = [], 0, 0
    try:
        with log(count=200_000, first_items=64, chunk_bytes=1 << 14) as queue:
            reader = queue.subscribe(start="earliest")
            tables.append(reader.to_arrow(1))  # imports all it needs: a rang import complains
            while reader.lag:
                tries += 1
                signal.setitimer(signal.ITIMER_REAL, 0.000005 * (1 + tries % 12))
                try:
                    is_armed = True
                    tables.extend(map(reader.to_arrow, [1000]))  # no bytecode between the call and the list
                    is_armed = False
                except Rang:
                    is_armed = False
                    rings += 1
                assert reader.position == sum(table.num_rows for table in tables)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [n for table in tables for n in numbers(table)] == list(range(200_000))
    assert rings > 5


def test_a_dropped_reader_gets_what_it_had_and_then_data_lost():
    with log(count=10, on_full="drop_slowest", max_bytes=1 << 20) as queue:
        reader = queue.subscribe(start="earliest")
        queue.put_many(ticks(10, 200_000))
        with pytest.raises(DataLost, match="dropped as the slowest"):
            reader.to_arrow()
        table = reader.to_arrow()
        assert numbers(table) == list(range(200_000 - table.num_rows, 200_000))


def test_data_lost_comes_through_a_stream_with_its_text():
    with log(count=10, on_full="drop_slowest", max_bytes=1 << 20) as queue:
        reader = queue.subscribe(start="earliest")
        stream = pa.RecordBatchReader.from_stream(reader)
        queue.put_many(ticks(10, 200_000))
        with pytest.raises(Exception, match=r"DataLost.*dropped as the slowest"):
            stream.read_all()
        assert reader.to_arrow().num_rows > 0


def test_a_stream_of_a_reader_is_lazy_and_ends_where_the_log_ended():
    with log(count=200_000) as queue, queue.subscribe(start="earliest") as reader:
        stream = pa.RecordBatchReader.from_stream(reader)
        queue.put_many(ticks(200_000, 200_010))
        assert reader.position == 0
        first = stream.read_next_batch()
        assert reader.position == first.num_rows < 200_000
        rest = stream.read_all()
        assert first.num_rows + rest.num_rows == reader.position == 200_000
        assert numbers(pa.table(reader)) == list(range(200_000, 200_010))
        assert pa.schema(reader) == pa.schema(queue) == schema_of(TICK)


def test_a_stream_of_a_queue_has_all_that_is_kept_and_moves_nothing():
    with log(count=100_000) as queue, queue.subscribe(start=10) as reader:
        for _ in range(2):
            assert numbers(pa.table(queue)) == list(range(100_000))
        assert reader.position == 10
        stream = pa.RecordBatchReader.from_stream(queue)
        assert stream.read_next_batch().num_rows < 100_000
        queue.clear()
        with pytest.raises(Exception, match=r"DataLost.*no longer kept"):
            stream.read_all()
        assert pa.table(queue).num_rows == 0


def test_closed_handles_say_so():
    queue = log()
    reader = queue.subscribe(start="earliest")
    stream = pa.RecordBatchReader.from_stream(reader)
    queue.close()
    for call in (reader.to_arrow, reader.__arrow_c_stream__, queue.__arrow_c_stream__, lambda: queue.read_arrow(0, 1)):
        with pytest.raises(QueueClosed):
            call()
    with pytest.raises(Exception, match="closed"):
        stream.read_all()


@pytest.mark.parametrize("wrong", [0, -1, True, "3", 1.5])
def test_bad_arguments_are_refused_and_move_nothing(wrong):
    with log() as queue, queue.subscribe(start="earliest") as reader:
        with pytest.raises((TypeError, ValueError), match="max_items must be"):
            reader.to_arrow(wrong)
        with pytest.raises(ValueError, match="timeout must be"):
            reader.to_arrow(timeout=-1)
        with pytest.raises(ValueError, match="strings must be"):
            reader.to_arrow(strings="text")
        assert reader.position == 0
        assert reader.to_arrow(1 << 70).num_rows == 1000


KINDS = [
    ("bounded", lambda: queueduct.BoundedQueue.create("q", 64, item=TICK)),
    ("growing", lambda: queueduct.GrowingQueue.create("q", item=TICK)),
    ("overwriting", lambda: queueduct.OverwritingQueue.create("q", 64, item=TICK)),
    ("slots", lambda: queueduct.SlotQueue.create("q", 64, item=TICK)),
]


@pytest.mark.parametrize("create", [create for _, create in KINDS], ids=[name for name, _ in KINDS])
def test_every_kind_takes_and_gives_tables(create):
    from queueduct.arrow import table_from

    with create() as queue:
        table = table_from(ticks(0, 30))
        assert queue.put_arrow(table) == 30
        assert queue.put_arrow(pa.RecordBatchReader.from_batches(table.schema, table.to_batches())) == 30
        assert queue.put_arrow(table.slice(0, 0)) == 0
        with pytest.raises(ValueError, match="missing: px; unknown: none"):
            queue.put_arrow(table.drop_columns("px"))
        got = []
        while len(got) < 60:
            got += numbers(get_table(queue, 100, timeout=5))
        assert got == [*range(30), *range(30)]


def test_a_log_takes_tables_too_and_all_or_nothing_of_each():
    from queueduct.arrow import table_from

    with EventQueue.create("q", item=TICK) as queue:
        table = table_from(ticks(0, 100_000))
        assert queue.put_arrow(table) == 100_000
        assert queue.read(0, 100_000).tobytes() == ticks(0, 100_000).tobytes()
        worse = pa.concat_tables(
            [table, table.slice(0, 1).set_column(0, "sym", pa.array(["too long for it"]))],
            promote_options="default",
        )
        with pytest.raises(ValueError, match="'sym' has a value of length 15"):
            queue.put_arrow(worse)
        assert queue.end == 100_000
        with pytest.raises(TypeError, match="subscribe"):
            get_table(queue, 1, timeout=1)


def test_get_table_gives_back_what_has_no_columns():
    with queueduct.BoundedQueue.create("q", 64, item=TICK) as queue:
        queue.put((b"\xff", 1.0, 3))
        with pytest.raises(ValueError, match="not UTF-8"):
            get_table(queue, 10, timeout=1)
        assert get_table(queue, 10, timeout=1, strings="binary").to_pylist() == [{"sym": b"\xff", "px": 1.0, "n": 3}]
        with pytest.raises(queueduct.Empty):
            get_table(queue, 10, timeout=0.01)


def test_importing_it_imports_no_spark_and_queueduct_imports_no_arrow(children):
    code = (
        "import sys, queueduct\n"
        "queue = queueduct.EventQueue.create('q', item='f8')\n"
        "assert 'pyarrow' not in sys.modules\n"
        "queue.put(1.0)\n"
        "assert queue.subscribe(start='earliest').to_arrow().num_rows == 1\n"
        "import queueduct.arrow\n"
        "print('pyarrow' in sys.modules, sorted({'pyspark', 'py4j', 'pandas'} & set(sys.modules)))"
    )
    assert children.run(code) == "True []\n"


def test_without_pyarrow_the_error_says_what_to_install(children):
    code = (
        "import sys, queueduct\n"
        "sys.modules['pyarrow'] = None\n"
        "queue = queueduct.EventQueue.create('q', item='f8')\n"
        "reader = queue.subscribe()\n"
        "puts, reads = lambda: queue.put_arrow([]), lambda: queue.read_arrow(0, 0)\n"
        "for call in (reader.to_arrow, queue.__arrow_c_stream__, puts, reads):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    assert (
        children.run(code).splitlines()
        == ["queueduct.arrow needs pyarrow, which is not installed: pip install 'queueduct[arrow]'"] * 4
    )
