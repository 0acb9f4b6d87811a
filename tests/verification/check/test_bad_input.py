"""A history that cannot be checked is refused by name, never judged."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queueduct.verification.check import HistoryError, check
from tests.verification.check.brute import Op
from tests.verification.check.inputs import ACCEPTED, REFUSED, changed, written
from tests.verification.check.judging import records
from tests.verification.check.writing import SCHEMA, write

OPS = [
    Op("put", "ok", 1, 0, 0, 1),
    Op("put", "ok", 2, 1, 2, 3),
    Op("get", "ok", 1, 0, 4, 5),
    Op("get", "ok", 2, 1, 6, 7),
]


@pytest.fixture
def rows():
    return records(OPS)


@pytest.fixture
def history(tmp_path, rows):
    return write(tmp_path / "history", rows, "bounded", 2)


def refused(folder, words):
    """A history of so few operations is checked in memory: no session is asked for."""
    with pytest.raises(HistoryError, match=words) as caught:
        check(folder)
    assert isinstance(caught.value, ValueError)


def edit(history, **changes):
    path = history / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_history_itself_passes(history):
    assert check(history).ok


def test_no_directory(tmp_path):
    refused(tmp_path / "none", "is a directory")


def test_no_manifest(history):
    (history / "manifest.json").unlink()
    refused(history, "finished history has manifest.json")


@pytest.mark.parametrize("changes", [{"state": "running"}, {"status": "recording"}, {"finished": False}])
def test_a_run_that_goes_on(history, changes):
    edit(history, **changes)
    refused(history, "must have finished")


def test_a_temporary_file(history):
    (history / "worker-00002.parquet.tmp").write_bytes(b"")
    refused(history, "no temporary files")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000])
def test_a_manifest_that_is_none(history, text):
    (history / "manifest.json").write_text(text)
    refused(history, "manifest.json must be")


@pytest.mark.parametrize("kind", [None, "stack", 3])
def test_an_unknown_kind(history, kind):
    edit(history, kind=kind)
    refused(history, "a kind that is known: .*bounded")


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "2", True])
def test_a_capacity_that_is_none(history, capacity):
    edit(history, capacity=capacity)
    refused(history, "capacity in manifest.json must be a whole number")


def test_an_overwriting_queue_needs_its_capacity(history):
    edit(history, kind="overwriting", capacity=None)
    refused(history, "needs the capacity")


@pytest.mark.parametrize("kind", ["bounded", "slots"])
def test_without_a_capacity_the_rest_is_proved(history, kind):
    edit(history, kind=kind, capacity=None)
    verdict = check(history)
    assert verdict.ok
    assert verdict.check == "tickets"
    assert any(sentence.startswith("not proved: capacity") for sentence in verdict.proved)


@pytest.mark.parametrize("writer", ACCEPTED.values(), ids=ACCEPTED)
def test_what_others_write_is_read_whole(tmp_path, writer):
    writer(tmp_path / "history")
    verdict = check(tmp_path / "history")
    assert verdict.ok
    assert verdict.operations == 42


@pytest.mark.parametrize(("writer", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_checked_is_refused_by_name(tmp_path, writer, words):
    writer(tmp_path / "history")
    refused(tmp_path / "history", words)


@pytest.mark.parametrize("ticket", [(1 << 62) + 1, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("first_ticket", [0, 5])
def test_a_position_that_no_queue_gives(tmp_path, rows, ticket, first_ticket):
    rows[0]["ticket"] = ticket
    verdict = check(write(tmp_path / "history", rows, "bounded", 2, first_ticket=first_ticket))
    assert set(verdict.counts) == {"ticket"}


def test_the_worker_of_a_witness_is_the_one_in_the_record(tmp_path):
    numbers = pa.array([140_000_000_000_000 + n for n in range(42)])
    tickets = changed("worker", numbers).column("ticket").to_pylist()
    wrong = changed("worker", numbers)
    place = wrong.schema.get_field_index("ticket")
    wrong = wrong.set_column(place, "ticket", pa.array([3, 2, *tickets[2:]]))
    written(wrong)(tmp_path / "history")
    witnesses = [each for violation in check(tmp_path / "history").violations for each in violation.witnesses]
    assert any(each.get("worker", 0) >= 140_000_000_000_000 for each in witnesses)


def test_no_files(history):
    for path in history.glob("*.parquet"):
        path.unlink()
    refused(history, "has none")


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -20])
def test_a_truncated_file(history, keep):
    path = history / "worker-00001.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    refused(history, "must be whole: .*worker-00001")


def test_damage_in_the_middle_of_a_file(tmp_path, rows):
    many = records([Op("put", "ok", n, n, n, n) for n in range(5000)])
    folder = write(tmp_path / "history", many, "growing", None)
    path = folder / "worker-00000.parquet"
    data = bytearray(path.read_bytes())
    data[100 : len(data) // 2] = bytes(len(data) // 2 - 100)
    path.write_bytes(data)
    refused(folder, "must be whole")


def test_a_file_less_than_the_manifest_lists(history):
    edit(history, files=["worker-00000.parquet", "worker-00001.parquet", "worker-00002.parquet"])
    refused(history, "must be there: worker-00002")


def test_fewer_operations_than_the_manifest_counts(history):
    edit(history, operations=5)
    refused(history, "4 of 5")


def test_two_manifests(history, tmp_path, rows):
    write(history / "other", rows, "bounded", 2)
    refused(history, "of one run")


def test_a_file_that_the_manifest_does_not_list(history, rows):
    edit(history, files=["worker-00000.parquet"])
    refused(history, "does not list worker-00001")


def test_files_of_two_runs_by_their_names(history, rows):
    edit(history, run="a")
    schema = SCHEMA.with_metadata({"run": "b"})
    pq.write_table(pa.Table.from_pylist(rows[2:], schema), history / "worker-00001.parquet")
    refused(history, "of one run: .*worker-00001.parquet is of b, manifest.json of a")


@pytest.mark.parametrize("with_tickets", [True, False])
def test_files_of_two_runs_by_their_values(tmp_path, rows, with_tickets):
    rows = rows if with_tickets else [dict(row, ticket=None) for row in rows]
    both = rows + [dict(row, worker=row["worker"] + 10) for row in rows]
    refused(write(tmp_path / "history", both, "bounded", 2), "values must be unique: [12] was put twice")


@pytest.mark.parametrize("column", SCHEMA.names)
def test_a_missing_column(history, rows, column):
    table = pa.Table.from_pylist(rows, SCHEMA).drop_columns([column])
    pq.write_table(table, history / "worker-00001.parquet")
    refused(history, f"has no {column}")


@pytest.mark.parametrize("column", SCHEMA.names)
def test_a_column_of_another_type(history, rows, column):
    table = pa.Table.from_pylist(rows, SCHEMA)
    place = table.schema.get_field_index(column)
    wrong = pa.array([1.5] * len(rows))
    pq.write_table(table.set_column(place, column, wrong), history / "worker-00001.parquet")
    refused(history, f"the column {column} must be .*: in .* it is double")


def test_columns_without_any_value_need_no_type(tmp_path, rows):
    folder = write(tmp_path / "history", rows, "bounded", 2)
    table = pa.Table.from_pylist(rows[2:], SCHEMA)
    for column in ("reader", "weak"):
        place = table.schema.get_field_index(column)
        table = table.set_column(place, column, pa.nulls(len(table)))
    pq.write_table(table, folder / "worker-00001.parquet")
    assert check(folder).ok


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"op": "peek"}, "must be one of .*: 1 rows are 'peek ok'"),
        ({"outcome": "maybe"}, "'put maybe'"),
        ({"outcome": "empty"}, "'put empty'"),
        ({"op": "get", "outcome": "full"}, "'get full'"),
        ({"op": None}, "must be one of"),
        ({"return_ns": -1}, "clock must not go backwards: .* worker 0"),
        ({"return_ns": None}, "null for pending operations only"),
        ({"outcome": "pending"}, "has not returned"),
        ({"value": None}, "value must not be null"),
        ({"invoke_ns": None}, "must not be null"),
        ({"worker": None}, "must not be null"),
    ],
)
def test_a_row_that_contradicts_itself(tmp_path, rows, changes, words):
    rows[0].update(changes)
    refused(write(tmp_path / "history", rows, "bounded", 2), words)


def test_a_get_of_a_log_without_its_reader(tmp_path, rows):
    refused(write(tmp_path / "history", rows, "events", None), "must name their reader")


def test_an_empty_history_passes(tmp_path):
    verdict = check(write(tmp_path / "history", [], "bounded", 2))
    assert verdict.ok
    assert verdict.operations == 0


def test_tickets_may_begin_where_the_manifest_says(tmp_path, rows):
    moved = [dict(row, ticket=row["ticket"] + 1000) for row in rows]
    assert not check(write(tmp_path / "a", moved, "bounded", 2)).ok
    assert check(write(tmp_path / "b", moved, "bounded", 2, first_ticket=1000)).ok


def test_the_width_is_at_least_one(history):
    with pytest.raises(ValueError, match="width must be at least 1"):
        check(history, width=0)
