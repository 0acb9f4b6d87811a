"""``queueduct demo --no-spark``: the whole demonstration, as a process of its own, with kills on the way."""

import json
import os
import re
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest

from tests.support.command import started
from tests.support.deadline import until

LINE = "live page: "


def test_it_accounts_for_every_tick_and_shows_its_queues_meanwhile(queue_dir, tmp_path):
    demo = started("demo", "--no-spark", "--seconds", "3", "--rate", "20000", "--port", "0", "--out", tmp_path / "out")
    with demo:
        address, _, token = demo.stdout.readline().removeprefix(LINE).strip().partition("#token=")
        asked = Request(f"{address}api/queues", headers={"Authorization": f"Bearer {token}"})
        shown = lambda: json.load(urlopen(asked))["queues"]  # noqa: E731  # asked again and again
        until(lambda: any(queue["name"].endswith("-ticks") and queue["rates"] for queue in shown()), "its queue", 20)
        out, err = demo.communicate(timeout=100)
    assert (demo.returncode, err) == (0, "")
    assert "every tick is in the archive exactly once, and every candle is right" in out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [name for _, name in summary["killed"]] == ["the producer 3", "the recorder", "the maker of candles"]
    assert summary["rows"] == sum(symbol["archived"] for symbol in summary["symbols"]) > 1_000
    assert list(queue_dir.glob("demo-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_on_the_way_ends_it_with_the_account(queue_dir, tmp_path, number):
    demo = started("demo", "--no-spark", "--rate", "4000", "--json", "--out", tmp_path / "out")
    with demo:
        until(lambda: list(tmp_path.glob("out/archive/*.parquet")), "the first file", 30)
        until(lambda: len(list(tmp_path.glob("out/archive/*.parquet"))) > 4, "some files", 30)
        demo.send_signal(number)
        out, err = demo.communicate(timeout=100)
    assert (demo.returncode, err) == (0, "")
    account = json.loads(out)
    assert (account["ok"], account["problems"]) == (True, [])
    assert list(queue_dir.glob("demo-*")) == []


def test_without_matplotlib_there_is_no_plot_and_a_word_about_it(tmp_path):
    blocked = tmp_path / "matplotlib.py"
    blocked.write_text("raise ImportError('none')\n")
    demo = started(
        *("demo", "--no-spark", "--seconds", "1", "--rate", "4000", "--out", tmp_path / "out"),
        env={**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "60"},
    )
    with demo:
        out, err = demo.communicate(timeout=100)
    assert (demo.returncode, err) == (0, "")
    assert re.search(r"no plot: it needs\s+matplotlib", out)
    assert not (tmp_path / "out" / "plot.png").exists()


def test_it_needs_no_spark():
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import queueduct.demo.flow, queueduct.demo.without_spark\n"
        "assert 'queueduct.spark.pipelines' not in sys.modules\n"
    )
    demo = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (demo.returncode, demo.stderr) == (0, "")
