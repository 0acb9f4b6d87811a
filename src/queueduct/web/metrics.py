"""Metrics in the format of Prometheus: a collector over what a monitor has seen. prometheus_client is imported late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from queueduct.monitoring import QueueSeen, Snapshot, State, Status

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["QueueCollector", "metrics_page"]

MISSING = "/metrics needs prometheus_client, an extra: pip install 'queueduct[metrics]'"
OF_QUEUE = ("queue", "kind")

GAUGES: dict[str, tuple[str, Callable[[QueueSeen], float | None]]] = {
    "queueduct_depth_items": ("Items that are kept.", lambda queue: queue.depth),
    "queueduct_leased_items": ("Items that live consumers have on lease.", lambda queue: queue.leased),
    "queueduct_fill_ratio": ("How full the queue is, from 0 to 1.", lambda queue: queue.fill),
    "queueduct_oldest_seconds": (
        "Age of the oldest item that somebody still has to get, as far as it was watched.",
        lambda queue: queue.oldest_seconds,
    ),
    "queueduct_resident_bytes": ("Bytes of memory or disk that the queue takes.", lambda queue: queue.resident_bytes),
    "queueduct_created_timestamp_seconds": (
        "When the queue was made.",
        lambda queue: None if queue.created is None else queue.created.timestamp(),
    ),
}
COUNTERS: dict[str, tuple[str, Callable[[QueueSeen], float]]] = {
    "queueduct_items_put": ("Items put since the queue was made.", lambda queue: queue.totals.items_put),
    "queueduct_items_got": ("Items that consumers got.", lambda queue: queue.totals.items_got),
    "queueduct_bytes_put": ("Bytes of the items put.", lambda queue: queue.totals.bytes_put),
    "queueduct_bytes_got": ("Bytes of the items got.", lambda queue: queue.totals.bytes_got),
    "queueduct_waited_seconds": ("Seconds that calls have waited.", lambda queue: queue.totals.waited_seconds),
}


class QueueCollector:
    """A custom collector for any registry: ``registry.register(QueueCollector(monitor.look))``.

    Processes that use the queues need not know of it: all counters are in the queues.
    """

    def __init__(self, look: Callable[[], Snapshot]) -> None:
        self._look = look

    def describe(self) -> list[Metric]:
        """Nothing: a registry would otherwise look at all queues when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields every metric, of all queues at one moment."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        snapshot = told(self._look())
        readable = [queue for queue in snapshot.queues if queue.error is None]
        yield self._states(snapshot)
        for name, (text, gauge) in GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=OF_QUEUE)
            for queue in readable:
                if (value := gauge(queue)) is not None:
                    family.add_metric([queue.name, queue.kind], value)
            yield family
        for name, (text, counter) in COUNTERS.items():
            total = CounterMetricFamily(name, text, labels=OF_QUEUE)
            for queue in readable:
                total.add_metric([queue.name, queue.kind], counter(queue))
            yield total
        yield from self._by_label(readable)
        yield from self._readers(readable)
        yield from self._pipelines(snapshot)

    def _states(self, snapshot: Snapshot) -> Metric:
        from prometheus_client.core import StateSetMetricFamily

        family = StateSetMetricFamily("queueduct_state", "The queue as a whole.", labels=["queue"])
        for queue in snapshot.queues:
            family.add_metric([queue.name], {str(state): state == queue.state for state in State})
        return family

    def _by_label(self, queues: list[QueueSeen]) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        waits = CounterMetricFamily("queueduct_waits", "Calls that had to wait.", labels=[*OF_QUEUE, "wait"])
        people = GaugeMetricFamily("queueduct_participants", "Who takes part.", labels=[*OF_QUEUE, "state"])
        recovered = CounterMetricFamily("queueduct_recovered", "What was put right.", labels=[*OF_QUEUE, "what"])
        lost = CounterMetricFamily("queueduct_lost", "What no consumer got.", labels=[*OF_QUEUE, "what"])
        for queue in queues:
            both = [queue.name, queue.kind]
            waits.add_metric([*both, "room"], queue.totals.waits_for_room)
            waits.add_metric([*both, "items"], queue.totals.waits_for_items)
            for state, number in (("alive", queue.alive), ("dead", queue.dead)):
                people.add_metric([*both, state], number)
            for family, counts in ((recovered, queue.recoveries), (lost, queue.losses)):
                for what, number in counts.items():
                    family.add_metric([*both, what], number)
        yield from (waits, people, recovered, lost)

    def _readers(self, queues: list[QueueSeen]) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily, StateSetMetricFamily

        labels = ["queue", "reader"]
        lag = GaugeMetricFamily("queueduct_reader_lag_items", "Items that a reader has not read.", labels=labels)
        late = GaugeMetricFamily("queueduct_reader_lag_seconds", "Age of the first of them.", labels=labels)
        status = StateSetMetricFamily("queueduct_reader_status", "How a reader is doing.", labels=labels)
        for queue in queues:
            for reader in queue.readers:
                lag.add_metric([queue.name, reader.label], reader.lag)
                late.add_metric([queue.name, reader.label], reader.lag_seconds)
                status.add_metric([queue.name, reader.label], {str(each): each == reader.status for each in Status})
        yield from (lag, late, status)

    def _pipelines(self, snapshot: Snapshot) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        labels = ["queue", "title"]
        running = GaugeMetricFamily("queueduct_pipeline_running", "1 if a Spark query runs.", labels=labels)
        lag = GaugeMetricFamily("queueduct_pipeline_lag_items", "Items that it has not done.", labels=labels)
        rows = CounterMetricFamily("queueduct_pipeline_rows", "Rows since it was started.", labels=labels)
        newest = {(each.queue, each.title): each for queue in snapshot.queues for each in queue.pipelines}
        for names, each in newest.items():
            running.add_metric(names, each.state == "running")
            lag.add_metric(names, each.lag)
            rows.add_metric(names, each.rows)
        yield from (running, lag, rows)


def told(snapshot: Snapshot) -> Snapshot:
    """The same with names that are text: a file's name may hold any bytes, and one such must not end the scrape."""
    queues = tuple(
        queue._replace(
            name=text_of(queue.name),
            pipelines=tuple(
                each._replace(queue=text_of(each.queue), title=text_of(each.title)) for each in queue.pipelines
            ),
        )
        for queue in snapshot.queues
    )
    return snapshot._replace(queues=queues)


def text_of(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def metrics_page(snapshot: Snapshot, accept: str) -> tuple[HTTPStatus, str, bytes]:
    """Returns status, content type and text of a scrape."""
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder
    except ImportError:
        return HTTPStatus.NOT_IMPLEMENTED, "text/plain; charset=utf-8", f"{MISSING}\n".encode()
    registry: Any = CollectorRegistry(auto_describe=False)
    registry.register(QueueCollector(lambda: snapshot))
    encode, kind = choose_encoder(accept)
    return HTTPStatus.OK, kind, encode(registry)
