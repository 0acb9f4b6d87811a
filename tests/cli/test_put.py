"""put: what is an item, what is a file, and what is said of a row that is neither."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import queueduct
from tests.support.command import call, done, refused

TICK = np.dtype([("sym", "S8"), ("px", "f8")])


@pytest.fixture
def jobs():
    with queueduct.BoundedQueue.create("jobs", 64) as made:
        yield made


@pytest.fixture
def ticks():
    with queueduct.EventQueue.create("ticks", item=TICK) as made:
        yield made


def test_words_are_items_of_bytes_as_they_are(jobs):
    assert done("put", "jobs", "a", "two words", "") == "put 3 items into jobs\n"
    assert jobs.get_many(9) == [b"a", b"two words", b""]


def test_words_are_json_for_records_and_objects(ticks):
    assert done("put", "ticks", '{"px": 1.5, "sym": "A"}', '["B", 2]') == "put 2 items into ticks\n"
    assert ticks.read(0, 2).tolist() == [(b"A", 1.5), (b"B", 2.0)]
    with queueduct.BoundedQueue.create("things", 4, item=object) as things:
        done("put", "things", '{"a": [1, null]}', "3")
        assert things.get_many(9) == [{"a": [1, None]}, 3]
    assert "it is no JSON" in refused("put", "ticks", "ACME", code=1)


@pytest.mark.parametrize("text", ['{\n "sym": "A",\n "px": 1\n}\n', '[{"sym": "A", "px": 1}]\n', '[\n{"sym": "A"}]'])
def test_rows_that_are_no_lines_are_refused_with_what_makes_them_lines(ticks, text):
    why = refused("put", "ticks", given=text, code=1)
    assert "stdin, line 1: " in why
    assert "each row is a line of its own, as jq -c . writes them, and of a list jq -c '.[]'" in why


def test_a_word_that_ends_as_a_file_is_one_unless_it_is_text(jobs, tmp_path):
    assert "there is no file 'o.csv'; to put this text itself give --text" in refused("put", "jobs", "a", "o.csv")
    assert jobs.empty(), "nothing was done"
    done("put", "jobs", "a", "o.csv", "--text")
    assert jobs.get_many(9) == [b"a", b"o.csv"]
    (tmp_path / "names.txt").write_text("one\ntwo\n\nlast")
    done("put", "jobs", tmp_path / "names.txt", "z")
    assert jobs.get_many(9) == [b"one", b"two", b"", b"last", b"z"]
    (tmp_path / "item").write_bytes(b"\0" * 70)
    done("put", "jobs", tmp_path / "item", "--format", "raw")
    assert jobs.get() == b"\0" * 70


def test_a_pipe_is_lines_of_json_unless_a_format_is_given(jobs, ticks):
    done("put", "jobs", given='"a"\n\n{"base64": "/w=="}\n')
    done("put", "jobs", "--format", "lines", given="x\ny\n")
    done("put", "jobs", "-", "--format", "csv", given="value\nbase64:/w==\n")
    assert jobs.get_many(9) == [b"a", b"\xff", b"x", b"y", b"\xff"]
    done("put", "ticks", "--format", "csv", given="px,sym\n1.5,A\n2.5,B\n")
    assert ticks.read(0, 2).tolist() == [(b"A", 1.5), (b"B", 2.5)]
    assert "an item of bytes must be text: 1; put each line as it is" in refused("put", "jobs", given="1\n", code=1)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("t.csv", "sym,px\nA,1\nB,x\nC,3\n", "t.csv, line 3: column 'px': it is no number: 'x'; 1 item is in ticks"),
        ("t.csv", "sym,px\nA,1\nB\n", "t.csv, line 3: a row must have 2 cells, as the header has: it has 1; 1 item is"),
        ("t.csv", "sym,qty\nA,1\n", "missing: px; unknown: qty; write sym,px; 0 items are in ticks"),
        ("t.csv", "sym,px\nA,1\nlong long long,2\n", "t.csv, line 3: field 'sym' must come through unchanged"),
        ("t.csv", 'sym,px\nA,1\n"B,2\n', "t.csv, line 3: it is no CSV: unexpected end of data; 1 item is"),
        ("t.jsonl", '{"sym": "A", "px": 1}\n\n{"sym": "A"}\n', "t.jsonl, line 3: a row must have exactly the record's"),
        (
            "t.jsonl",
            '{"sym": "A", "px": 1}\n{"sym": "A", "px": "1"}\n',
            "t.jsonl, line 2: field 'px' must come through unchanged",
        ),
        ("t.jsonl", '{"sym": "A", "px": 1}\n{"sym":\n', "t.jsonl, line 2: it is no JSON"),
        (
            "t.jsonl",
            '{"sym": "A", "px": 1}\n{"sym": {"base64": "?"}, "px": 1}\n',
            "line 2: field 'sym': it is no base64",
        ),
        (
            "t.raw",
            "0123456789abcdef0123",
            "t.raw, row 2: a record has 16 bytes, and the last one of the file 4; 1 item",
        ),
    ],
)
def test_a_bad_row_is_named_and_what_came_before_it_is_in(ticks, tmp_path, monkeypatch, name, text, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    told = refused("put", "ticks", name, code=1)
    assert why in told
    assert f"{ticks.end} item" in told
    assert ticks.end == (0 if "0 items" in why else 1)


def test_a_bad_row_of_columns_is_named(ticks, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="an extra: make test installs it")
    from pyarrow import parquet

    parquet.write_table(pa.table({"sym": ["A", "B", "too long for it"], "px": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet")
    assert "t.parquet, row 3: column 'sym'" in refused("put", "ticks", tmp_path / "t.parquet", code=1)
    assert ticks.read(0, 2)["px"].tolist() == [1.0, 2.0]
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    assert "it is no Parquet, or damaged" in refused("put", "ticks", tmp_path / "t.parquet", code=1)


def test_a_producer_puts_exactly_once(ticks, tmp_path):
    (tmp_path / "o.csv").write_text("sym,px\nA,1\nB,2\n")
    given = ("put", "ticks", tmp_path / "o.csv", "--producer", "feed-1", "--sequence", "17")
    assert done(*given) == "put 2 items into ticks\n"
    assert done(*given) == "sequence 17 of feed-1 is in ticks already: nothing was put\n"
    assert json.loads(done(*given, "--json"))["items"] == 0
    assert ticks.end == 2
    (tmp_path / "o.csv").write_text("sym,px\nA,1\nmuch too long,2\nB,3\n")
    assert "o.csv, line 3" in refused(*given[:-1], "18", code=1)
    assert ticks.end == 2, "all rows are looked at before the first is put"


def test_what_belongs_together_is_asked_for_together(jobs):
    assert "belong together" in refused("put", "jobs", "a", "--producer", "p")
    assert "belong together" in refused("put", "jobs", "a", "--sequence", "1")
    assert "leave one out" in refused("put", "jobs", "a", "--producer", "p", "--sequence", "1", "--rate", "1/s")
    queueduct.OverwritingQueue.create("feed", 4, item="f8").close()
    assert "has no exactly-once puts" in refused("put", "feed", "1", "--producer", "p", "--sequence", "1")
    for rate in ("0", "x", "1/", "1/fortnight", "-1"):
        assert refused("put", "jobs", "a", "--rate", rate)


def test_a_full_queue_ends_put_when_the_time_is_up():
    queueduct.BoundedQueue.create("small", 2).close()
    result = call("put", "small", "a", "b", "c", "--timeout", "0.05")
    assert (result.exit_code, result.stderr) == (
        3,
        "Error: small had no room for 0.05 s; 2 items are in small by this command\n",
    )
    assert call("put", "small", "d", "--timeout", "0").exit_code == 3
    result = call("put", "small", "d", "--producer", "p", "--sequence", "1", "--timeout", "0.05")
    assert result.exit_code == 3
    assert "the same command goes on where it stopped" in result.stderr


def test_a_log_that_raises_when_it_is_full_ends_put_at_once():
    queueduct.EventQueue.create("log", item="u1", max_bytes=1024, on_full="raise").close()
    with queueduct.open("log") as log:
        log.subscribe("holds back")
    told = refused("put", "log", "--format", "raw", given=bytes(5000), code=1)
    assert "items are in log by this command" in told


def test_a_queue_that_is_shut_down_takes_nothing(jobs):
    jobs.shutdown()
    assert "is shut down, and takes nothing more; 0 items are in jobs" in refused("put", "jobs", "a", code=1)


def test_a_rate_spreads_items_over_time(jobs):
    began = time.monotonic()
    done("put", "jobs", "--format", "lines", "--rate", "100/s", given="x\n" * 21)
    assert time.monotonic() - began >= 0.2
    assert jobs.qsize() == 21


@pytest.mark.parametrize("kind", ["growing", "overwriting", "slots"])
def test_every_kind_takes_items(kind):
    done("create", "q", kind, "--item", "n:i8", "--capacity" if kind != "growing" else "--steps", "8")
    assert done("put", "q", '{"n": 1}', '{"n": 2}') == "put 2 items into q\n"
    with queueduct.open("q") as queue:
        assert [one["n"] for one in queue.get_many(4)] == [1, 2]


def test_what_was_put_is_json_when_asked_for(jobs):
    row = json.loads(done("put", "jobs", "a", "b", "--json"))
    assert (row["name"], row["items"]) == ("jobs", 2)
    assert row["seconds"] >= 0
