"""The account is computed from the archive: what is missing, doubled, strange or wrong in it is told."""

import time

import numpy as np
import pytest

import queueduct
from queueduct.demo.candles import CANDLE, LATE_US, SECOND_US, Seconds, last_done, make_candles, put_all
from queueduct.demo.check import settle
from queueduct.demo.lake import files_of
from queueduct.demo.plot import draw_plot
from queueduct.demo.ticks import PRODUCERS, SYMBOLS, TICK, Plan, batch_of
from queueduct.recording import record

RATE = 1000.0
SECONDS = 5
START_US = 1_800_000_000 * SECOND_US


def ticks_of_seconds(seconds=SECONDS):
    """Ticks of all producers, interleaved in batches of a fifth of a second."""
    count = int(RATE // 5)
    return [
        batch_of(producer, number + 1, number * count, count, START_US + (number + 1) * SECOND_US // 5 - 1, RATE)
        for number in range(seconds * 5)
        for producer in range(PRODUCERS)
    ]


def archived(tmp_path, batches, name="archive"):
    """Returns an archive of these batches, in two files."""
    with queueduct.EventQueue.create(name, item=TICK) as queue:
        for half in (batches[: len(batches) // 2], batches[len(batches) // 2 :]):
            queue.put_many(np.concatenate(half))
            record(queue, tmp_path / name, available_now=True)
        queue.unlink()
    return tmp_path / name


def candles_of(batches):
    seconds, found = Seconds(np.array(SYMBOLS, "S8"), -1), []
    for batch in batches:
        seconds.add(batch, 0)
        found += seconds.closed()
    return np.concatenate([candles for _, candles in found + seconds.closed(is_end=True)])


def account_of(tmp_path, batches, candles, puts=None):
    counts = [SECONDS * int(RATE)] * PRODUCERS if puts is None else puts
    return settle(archived(tmp_path, batches), counts, candles, START_US / 1e6, START_US / 1e6 + SECONDS)


def test_an_archive_that_has_everything_once_is_right(tmp_path):
    batches = ticks_of_seconds()
    account = account_of(tmp_path, batches, candles_of(batches))
    assert (account.problems, account.rows) == ([], SECONDS * RATE * PRODUCERS)
    assert {symbol.symbol for symbol in account.symbols} == {symbol.decode() for symbol in SYMBOLS}
    assert all(symbol.put == symbol.archived == symbol.in_candles == SECONDS * RATE / 2 for symbol in account.symbols)
    assert len(account.latency_over_time) == len(files_of(tmp_path / "archive")) == 2


def test_what_is_missing_or_doubled_is_told_by_symbol(tmp_path):
    batches = ticks_of_seconds()
    candles = candles_of(batches)
    changed = [batches[0][1:], *batches[1:], batches[5][:1]]  # the first ACME is missing, a CORE is there twice
    account = account_of(tmp_path, changed, candles)
    told = {symbol.symbol: (symbol.missing, symbol.doubled) for symbol in account.symbols}
    assert (told["ACME"], told["CORE"], told["BOLT"]) == ((1, 0), (0, 1), (0, 0))
    assert account.problems[0].startswith("ACME: 1 ticks are missing")
    assert account.problems[-1] == "2 candles differ from the archive"


def test_what_was_never_put_is_told(tmp_path):
    batches = ticks_of_seconds()
    account = account_of(tmp_path, batches, candles_of(batches), puts=[5000, 4999, 5000, 5000])
    assert account.problems == ["1 archived ticks were never put"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda candles: candles[1:], "1 candles are missing"),
        (lambda candles: np.concatenate([candles, candles[:1]]), "1 candles came twice"),
        (lambda candles: candles[:0], "no candle has come"),
        (lambda candles: with_one(candles, "high", 0.0), "1 candles differ from the archive"),
        (lambda candles: with_one(candles, "open", 0.0), "1 candles differ from the archive"),
        (lambda candles: with_one(candles, "close", 0.0), "1 candles differ from the archive"),
        (lambda candles: with_one(candles, "volume", 0), "1 candles differ from the archive"),
    ],
)
def test_a_candle_that_is_not_what_the_ticks_make_is_told(tmp_path, change, problem):
    batches = ticks_of_seconds(2)
    account = account_of(tmp_path, batches, change(candles_of(batches)), puts=[2000] * PRODUCERS)
    assert account.problems == [problem]


def with_one(candles, name, value):
    changed = candles.copy()
    changed[name][3] = value
    return changed


def test_the_plot_never_shows_more_archived_than_put(tmp_path):
    began = time.time()
    ends = [int(began * 1e6) + number * 10_000 for number in range(20)]
    batches = [batch_of(0, number + 1, 40 * number, 40, end, 4000.0) for number, end in enumerate(ends)]
    with queueduct.EventQueue.create("live", item=TICK) as queue:
        for batch in batches:
            time.sleep(max(0.0, batch["ts"][-1].astype("i8") / 1e6 - time.time()))
            queue.put_many(batch)
            record(queue, tmp_path / "live", available_now=True)
    account = settle(tmp_path / "live", [800, 0, 0, 0], None, began, time.time())
    moments, totals = zip(*account.put_over_time, strict=True)
    assert len(account.archived_over_time) == 20
    for moment, rows in account.archived_over_time:
        later = [total for at, total in zip(moments, totals, strict=True) if at >= moment]
        assert rows <= (later[0] if later else totals[-1])
    draw_plot(account, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_the_same_batch_has_the_same_ticks():
    assert (batch_of(2, 7, 100, 50, START_US, RATE) == batch_of(2, 7, 100, 50, START_US, RATE)).all()


def test_a_plan_holds_the_last_batch_that_was_written_down_as_a_whole():
    plan = Plan()
    assert plan.write(0, 10, 5) == 1
    plan.write(10, 20, 6)
    plan.fields[3:6] = [99, 99, 99]  # killed on the way to the third: its number is not there
    assert plan.read() == (2, 10, 20, 6)


@pytest.mark.parametrize("killed_after", range(0, 100, 9))
def test_a_maker_of_candles_that_is_killed_anywhere_puts_each_once(killed_after, tmp_path):
    """The first one dies before or after it commits; the second reads from there."""
    batches = ticks_of_seconds()
    positions = np.cumsum([0, *map(len, batches)])
    with (
        queueduct.EventQueue.create("ticks", item=TICK) as ticks,
        queueduct.EventQueue.create("candles", item=CANDLE) as candles,
    ):
        ticks.put_many(np.concatenate(batches))
        with ticks.subscribe("candles", start="earliest") as reader:
            seconds = Seconds(np.array(SYMBOLS, "S8"), last_done(candles))
            for number, batch in enumerate(batches[:killed_after]):
                seconds.add(batch, int(positions[number]))
                is_put = put_all(candles, seconds.closed())
                if is_put and number != killed_after - 1:
                    reader.commit(seconds.kept_from(int(positions[number + 1])))
        ticks.shutdown()
        make_candles(ticks, candles)
        found = candles.read(0, candles.end)
        assert ticks.readers()[0].lag == 0
    assert found.tolist() == candles_of(batches).tolist()


def test_late_ticks_do_not_open_a_second_again():
    seconds = Seconds(np.array(SYMBOLS, "S8"), -1)
    early, late = batch_of(0, 1, 0, 10, START_US, RATE), batch_of(0, 2, 10, 10, START_US + 3 * SECOND_US, RATE)
    seconds.add(early, 0)
    assert seconds.closed() == []
    seconds.add(late, 10)
    assert [second for second, _ in seconds.closed()] == [START_US // SECOND_US - 1, START_US // SECOND_US]
    seconds.add(early, 20)
    assert seconds.closed() == []
    assert LATE_US == SECOND_US
