"""Metrics: what a scrape says is what the queues say, and the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
import sys

import pytest

import queueduct
from queueduct.monitoring import Monitor
from queueduct.monitoring.pipelines import PipelineFile
from queueduct.web import metrics
from queueduct.web.server import PAGE
from tests.web.asking import ask

pytest.importorskip("prometheus_client", reason="prometheus_client is an extra: make test installs it")


def scrape(server) -> dict[str, float]:
    from prometheus_client.parser import text_string_to_metric_families

    answer = ask(server, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            labels = ",".join(sample.labels[key] for key in sorted(sample.labels))
            assert (sample.name, labels) not in found, "each is there once"
            found[f"{sample.name}/{labels}"] = sample.value
    return found


def test_a_scrape_says_what_the_queues_say(serve, queue_dir):
    with (
        queueduct.EventQueue.create("ticks", item="f8") as ticks,
        queueduct.OverwritingQueue.create("feed", 4, item="f8") as feed,
        queueduct.BoundedQueue.create("jobs", 8, slot_bytes=16) as jobs,
        ticks.subscribe("archive"),
        ticks.subscribe(),
        ticks.subscribe(),
    ):
        ticks.put_many([1.0] * 10)
        feed.put_many([1.0] * 10)
        jobs.put_many([b"a", b"b"])
        jobs.get()
        PipelineFile(queue_dir, "ticks", "archive ticks to lake", "lake", None, "state").tell(rows=7, lag=3)
        seen = scrape(serve())
    assert seen["queueduct_depth_items/events,ticks"] == 10
    assert seen["queueduct_items_put_total/bounded,jobs"] == 2
    assert seen["queueduct_items_got_total/bounded,jobs"] == 1
    assert seen["queueduct_bytes_put_total/events,ticks"] == 80
    assert seen["queueduct_fill_ratio/bounded,jobs"] == 1 / 8
    assert seen["queueduct_lost_total/overwriting,feed,overwritten"] == 6
    assert seen["queueduct_participants/bounded,jobs,alive"] == 1
    assert seen["queueduct_state/jobs,open"] == 1
    assert seen["queueduct_state/jobs,corrupt"] == 0
    for reader in ("archive", "(ephemeral 1)", "(ephemeral 2)"):
        assert seen[f"queueduct_reader_lag_items/ticks,{reader}"] == 10
    assert seen["queueduct_reader_status/ticks,unknown,archive"] == 1
    assert seen["queueduct_pipeline_rows_total/ticks,archive ticks to lake"] == 7
    assert seen["queueduct_pipeline_running/ticks,archive ticks to lake"] == 1
    assert seen["queueduct_created_timestamp_seconds/bounded,jobs"] == pytest.approx(jobs.created.timestamp())


def test_a_name_with_quotes_and_lines_is_one_label(serve):
    with queueduct.BoundedQueue.create('a"b\\c\nd', 8):
        assert scrape(serve())['queueduct_depth_items/bounded,a"b\\c\nd'] == 0


def test_a_name_that_is_no_text_does_not_end_the_scrape(serve):
    with queueduct.BoundedQueue.create("odd\udcff", 8), queueduct.BoundedQueue.create("jobs", 8):
        seen = scrape(serve())
    assert seen["queueduct_depth_items/bounded,jobs"] == seen["queueduct_depth_items/bounded,odd\\udcff"] == 0


def test_a_queue_that_cannot_be_read_has_a_state_and_no_numbers(serve, queue_dir):
    with queueduct.BoundedQueue.create("jobs", 8):
        (queue_dir / "bad").write_bytes((queue_dir / "jobs").read_bytes()[:64])
        seen = scrape(serve())
    assert seen["queueduct_state/bad,corrupt"] == 1
    assert [name for name in seen if "bad" in name and not name.startswith("queueduct_state/")] == []


def test_without_the_client_it_says_what_to_install(serve, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    answer = ask(serve(), "/metrics")
    assert answer.status == 501
    assert b"pip install 'queueduct[metrics]'" in answer.body


def test_a_registry_of_ones_own_takes_the_collector():
    from prometheus_client import CollectorRegistry, generate_latest

    with queueduct.BoundedQueue.create("jobs", 8) as q, Monitor() as monitor:
        registry = CollectorRegistry()
        registry.register(metrics.QueueCollector(monitor.look))
        q.put(b"a")
        assert b'queueduct_depth_items{kind="bounded",queue="jobs"} 1.0' in generate_latest(registry)


def test_the_dashboard_is_importable_and_asks_only_for_metrics_that_there_are(serve):
    board = json.loads((PAGE / "grafana.json").read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating"} <= set(board)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    with queueduct.EventQueue.create("ticks", item="f8") as q, q.subscribe("archive"):
        PipelineFile(q.directory, "ticks", "archive ticks", "lake", None, "state").tell()
        text = ask(serve(), "/metrics").body.decode()
    there = set(re.findall(r"^(queueduct_\w+)", text, re.MULTILINE))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [each["query"]["query"] for each in board["templating"]["list"] if isinstance(each["query"], dict)]
    # a state set has a label of its own name
    names = {name for query in asked for name in re.findall(r"(queueduct_\w+)(?!\w|=)", query)}
    assert len(names) >= 15
    assert names <= there
    labels = set(re.findall(r'[{,](\w+)="', text))
    assert {label for query in asked for label in re.findall(r"[{,](\w+)[=!]", query)} <= labels


@pytest.mark.parametrize("accept", ["", "text/plain", "application/openmetrics-text; version=1.0.0", "nonsense/*;;q=x"])
def test_whatever_a_scraper_accepts_it_gets_metrics(serve, accept):
    with queueduct.BoundedQueue.create("jobs", 8):
        answer = ask(serve(), "/metrics", Accept=accept)
        assert answer.status == 200
        assert b"queueduct_depth_items" in answer.body
