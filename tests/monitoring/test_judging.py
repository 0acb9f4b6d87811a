"""The status of a reader follows from the direction of its lag and its position alone."""

from __future__ import annotations

import pytest

from queueduct.monitoring import Status, worst
from queueduct.monitoring.judging import Judge

WINDOW = 5.0


def judged(looks: list[tuple[int, int]], *, every: float = 0.5, is_attached: bool = True) -> Status:
    """The status after these looks at (committed, lag)."""
    judge = Judge(WINDOW)
    for number, (committed, lag) in enumerate(looks):
        judge.look(100 + number * every, committed, lag)
    return judge.status(is_attached=is_attached, is_dropped=False)


def test_a_reader_that_has_everything_is_ok_at_the_first_look():
    assert judged([(10, 0)]) == Status.OK


def test_a_reader_that_lags_is_unknown_until_it_was_watched_for_a_window():
    assert judged([(10, 5)] * 10) == Status.UNKNOWN
    assert judged([(10, 5)] * 11) == Status.STALLED


def test_a_reader_that_does_not_move_is_stalled_whether_more_items_come_or_not():
    assert judged([(10, 5)] * 12) == Status.STALLED
    assert judged([(10, 5 + 7 * i) for i in range(12)]) == Status.STALLED


def test_a_reader_that_moves_and_lags_more_and_more_is_behind():
    assert judged([(10 * i, 100 + i) for i in range(12)]) == Status.BEHIND


def test_a_reader_whose_lag_falls_or_stays_is_ok():
    assert judged([(10 * i, 1000 - i) for i in range(12)]) == Status.OK
    assert judged([(10 * i, 1000) for i in range(12)]) == Status.OK


def test_a_reader_that_had_everything_once_within_the_window_is_ok():
    looks = [(10 * i, 100 + i) for i in range(12)]
    looks[6] = (60, 0)
    assert judged(looks) == Status.OK


@pytest.mark.parametrize("phase", range(4))
def test_a_reader_that_commits_in_batches_and_keeps_up_is_ok(phase):
    """Its lag is a saw, which is only behind if the whole saw rises."""
    keeps_up = [(40 * ((i + phase) // 4), 20 + 10 * ((i + phase) % 4)) for i in range(40)]
    assert judged(keeps_up) == Status.OK
    assert judged([(at, lag + 5 * i) for i, (at, lag) in enumerate(keeps_up)]) == Status.BEHIND


def test_a_stalled_reader_that_moves_again_is_stalled_no_more():
    assert judged([(10, 500)] * 20 + [(60, 450)]) == Status.OK


def test_nobody_attached_and_dropped_are_said_at_the_first_look():
    assert judged([(10, 0)], is_attached=False) == Status.UNATTENDED
    judge = Judge(WINDOW)
    judge.look(0, 10, 10)
    assert judge.status(is_attached=True, is_dropped=True) == Status.DROPPED


def test_the_speed_is_of_about_the_last_second_and_never_negative():
    judge = Judge(WINDOW)
    judge.look(0, 0, 0)
    assert judge.speed == 0
    for number in range(1, 9):
        judge.look(number / 2, 100 * number * number, 0)
    assert judge.speed == pytest.approx(100 * (64 - 36))
    judge.look(9, 0, 0)
    assert judge.speed == 0


def test_the_worst_status_is_the_one_to_look_at_first():
    assert worst([]) is None
    assert worst([Status.OK, Status.BEHIND, Status.UNATTENDED]) == Status.BEHIND
    assert worst(Status) == Status.DROPPED
