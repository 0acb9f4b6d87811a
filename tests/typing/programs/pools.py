"""Workers: what a job is, and what comes back."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, assert_type

from queueduct import BoundedQueue, GrowingQueue, Workers


def length_of(text: str) -> int:
    return len(text)


def with_a_queue_of_its_own() -> None:
    with Workers(None, length_of) as pool:
        assert_type(pool, Workers[str, int])
        assert_type(pool.submit("text"), Future[int])
        assert_type(pool.map(["text"]), Iterator[int])
        pool.submit(3)  # error: arg-type
        pool.map([3])  # error: list-item


def on_a_queue(texts: GrowingQueue[str], numbers: BoundedQueue[int]) -> None:
    assert_type(Workers("texts", length_of), Workers[str, int])
    assert_type(Workers(texts, length_of, processes=2, dead_letters="dead"), Workers[str, int])
    Workers(numbers, length_of)  # error: arg-type
    Workers("texts", "no function")  # error: arg-type


def annotated_without_types(pool: Workers) -> None:
    assert_type(pool.submit(3), Future[Any])
