"""The rows, one module for each topology. A row makes the cases that a plan asks for."""

from collections.abc import Callable

from benchmarks.case import Case, Plan
from benchmarks.rows import (
    batches_between_processes,
    broadcast,
    bytes_between_processes,
    columns,
    drop_in,
    family,
    frames_between_processes,
    growing_steady,
    idle_getter,
    jobs_in_a_pool,
    latest_value,
    ledger,
    objects_between_threads,
    recording,
    records_between_processes,
    round_trip,
    wake_up,
)

ROWS: tuple[Callable[[Plan], list[Case]], ...] = (
    bytes_between_processes.cases,
    batches_between_processes.cases,
    objects_between_threads.cases,
    records_between_processes.cases,
    family.cases,
    broadcast.cases,
    latest_value.cases,
    frames_between_processes.cases,
    idle_getter.cases,
    wake_up.cases,
    round_trip.cases,
    ledger.cases,
    columns.cases,
    recording.cases,
    growing_steady.cases,
    drop_in.cases,
    jobs_in_a_pool.cases,
)


def all_cases(plan: Plan) -> list[Case]:
    """Return every case of every row, in the order of the results."""
    return [case for row in ROWS for case in row(plan)]


def chosen(cases: list[Case], names: tuple[str, ...]) -> list[Case]:
    """Keep the cases whose name is, or begins with, one of `names`; none given keeps all."""
    if not names:
        return cases
    return [case for case in cases if any(case.name == name or case.name.startswith(f"{name}-") for name in names)]
