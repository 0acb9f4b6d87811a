"""What the processes of a pool send each other through its queues.

The supervisor decodes messages of builtin types only. What a user's class has pickled stays bytes in them, so that
no item and no result can run code in the supervisor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queueduct.items.types import BYTES, OBJECT, ItemType, decode_object, encode_object

__all__ = [
    "RESULT_LIMIT_BYTES",
    "Entry",
    "Failure",
    "FailureFields",
    "OutcomeFields",
    "decode_item",
    "decode_ready",
    "encode_ready",
    "pack_exception",
    "pack_result",
    "with_number",
]

NUMBER_BYTES = 8
SIMPLE = frozenset((int, float, str, bytes, bool, type(None)))  # types whose unpickling runs nobody's code
RESULT_LIMIT_BYTES = 1 << 30
EXCEPTION_LIMIT_BYTES = 16 << 20


FailureFields = tuple[str, str, str, bytes | None]


class Failure(NamedTuple):
    """Why a try failed."""

    error_type: str
    message: str
    traceback: str
    exception: bytes | None
    """The exception, pickled, if it can be unpickled."""


class Entry(NamedTuple):
    """A job that failed, in the queue ``retry``."""

    job: int
    tries: int
    due: float
    """When it may be tried again, by time.time()."""
    payload: bytes
    failure: FailureFields | None
    """None: the worker died."""
    died: tuple[int, int]
    """The line and the owner of the worker that died."""

    def encode(self) -> bytes:
        return encode_object(tuple(self))

    @classmethod
    def decode(cls, data: bytes) -> Entry:
        return cls(*decode_object(data))


# A job that is done, in the queue ``outcomes``: job, source, position, is_pickled, value. The value is the result if
# its type is one of SIMPLE, else its pickle. A plain tuple: there is one for each job. is_pickled is None if an earlier
# pool has delivered the result of a job that may come again.
OutcomeFields = tuple[int, int, int, bool | None, Any]

START_FAILED = -1  # the job's number in an outcome that says why a worker could not start


def with_number(number: int, item: object) -> bytes:
    """Returns an item of the pool's own queue."""
    return number.to_bytes(NUMBER_BYTES, "little") + encode_object(item)


def encode_ready(job: int, tries: int, payload: bytes) -> bytes:
    """Returns an item of the queue ``ready``."""
    return encode_object((job, tries, payload))


def decode_ready(data: bytes) -> tuple[int, int, bytes]:
    job, tries, payload = decode_object(data)
    return job, tries, payload


def decode_item(item_type: ItemType, payload: bytes) -> Any:
    """Returns the item as a get of the user's queue returns it."""
    if item_type.kind == OBJECT:
        return decode_object(payload)
    if item_type.kind == BYTES:
        return payload
    assert item_type.dtype is not None
    one = np.empty(1, item_type.dtype)
    one.view(np.uint8).reshape(-1)[:] = np.frombuffer(payload, np.uint8)
    return one[0]


def pack_result(result: object, job: int | None, limit: int) -> tuple[bool, Any]:
    """Returns a result for the supervisor; with ``job``, the pickled pair of both for a queue of results.

    A result that cannot be unpickled must fail here, in the worker, and not in the process that waits for it.
    """
    is_simple = type(result) in SIMPLE
    if is_simple and job is None:
        return False, result
    data = encode_object(result if job is None else (job, result))
    if len(data) > limit:
        raise ValueError(
            f"a result must have at most {limit} bytes when pickled: {len(data)} bytes; return less, for example the "
            "name of a file" + (", or use a larger queue of results" if job is not None else "")
        )
    if not is_simple:
        decode_object(data)
    return True, data


def pack_exception(error: BaseException) -> bytes | None:
    """Returns the exception pickled, or None if another process could not unpickle it."""
    try:
        data = encode_object(error)
        if len(data) > EXCEPTION_LIMIT_BYTES:
            return None
        return data if isinstance(decode_object(data), BaseException) else None
    except BaseException:  # the code of an exception's class may raise anything
        return None
