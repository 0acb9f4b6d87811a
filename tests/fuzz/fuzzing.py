"""Damaged segments by the thousand. Runs as a process of its own, since a crash must not take the tests along.

    python fuzzing.py TARGET FIRST COUNT     the cases FIRST … FIRST + COUNT - 1; a case is its number, nothing else

Each case takes a sound segment, damages some of it before or while it is open, and calls everything.
Allowed: it works, or it raises one of ALLOWED. The number of the case stands on stdout before it is tried.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from pathlib import Path
from typing import Any

import queueduct
from tests.fuzz.targets import CAPACITY, KINDS, TARGETS, VALUES, Call
from tests.support.raw import RawSegment

ALLOWED = (queueduct.QueueductError, ValueError, OSError, queueduct.Empty, queueduct.Full, queueduct.ShutDown)

ENDS: dict[str, Call] = {
    "shutdown": lambda q, value: q.shutdown(),
    "close": lambda q, value: q.close(),
}


def main() -> None:
    target, first, count = TARGETS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    templates = [make_template(target, kind) for kind in range(len(KINDS))]
    outcomes: dict[str, int] = {}
    for case in range(first, first + count):
        os.write(1, b"%d\n" % case)
        try_case(target, case, templates, outcomes)
    print(outcomes, flush=True)


def make_template(target: Any, kind: int) -> tuple[bytes, int]:
    """The bytes of a sound segment up to its last that is not zero, and its size."""
    name = f"template{kind}"
    with target.create(name, kind) as q:
        target.fill(q, VALUES[kind])
    path = Path(os.environ["QUEUEDUCT_DIR"]) / name
    data = path.read_bytes()
    path.unlink()
    return data.rstrip(b"\0"), len(data)


def try_case(target: Any, case: int, templates: list[tuple[bytes, int]], outcomes: dict[str, int]) -> None:
    rng = random.Random(case)
    kind = rng.randrange(len(KINDS))
    path = Path(os.environ["QUEUEDUCT_DIR"]) / "q"
    path.write_bytes(templates[kind][0])
    path.chmod(0o600)
    os.truncate(path, templates[kind][1])
    is_open_before = rng.random() < 0.5
    used = None
    try:
        with target.raw("q") as raw:
            if is_open_before:
                used = target.begin(queueduct.open("q"))
                if rng.random() < 0.5:
                    target.calls["try_put"](used, VALUES[kind])
                    target.calls["try_get"](used, VALUES[kind])
            damage(target, raw, rng)
        if used is None:
            used = target.begin(queueduct.open("q"))
    except ALLOWED as error:
        note(outcomes, error)
    if used is not None:
        calls = list(target.calls)
        for call in [*rng.sample(calls, 8), "shutdown", *rng.sample(calls, 3), "close", "get"]:
            note(outcomes, attempt(target, used, call, kind))
    path.unlink()


def damage(target: Any, raw: RawSegment, rng: random.Random) -> None:
    """One to four blows into one or two areas."""
    areas = target.areas(raw)
    sign = rng.random() < 0.5
    for _ in range(rng.randint(1, 4)):
        name = rng.choices(list(areas), [often for _, _, often in areas.values()])[0]
        start, end, _ = areas[name]
        if end - start < 8:
            continue
        strike(raw.memory, rng, start, end)
        if name in ("header", "item_text") and sign and 0 < raw.field("item_text_bytes") < 3000:
            raw.sign()


def strike(memory, rng: random.Random, start: int, end: int) -> None:
    how = rng.randrange(4)
    if how == 0:
        at = rng.randrange(start, end)
        memory[at] = memory[at] ^ (1 << rng.randrange(8))
    elif how == 1:
        memory[rng.randrange(start, end)] = rng.randrange(256)
    else:
        at = rng.randrange(start, end - 7) // 8 * 8
        at = max(start, at)
        old = struct.unpack_from("<Q", memory, at)[0]
        near = (old + rng.choice([-CAPACITY, -2, -1, 1, 2, CAPACITY])) % 2**64
        far = rng.choice(
            [0, 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1, old | 2**63, rng.getrandbits(64), intent(rng)]
        )
        struct.pack_into("<Q", memory, at, near if how == 2 else far)


def intent(rng: random.Random) -> int:
    """What a participant might have declared."""
    return rng.choice([1, 2, 3]) << 62 | rng.randrange(20) << 40 | rng.randrange(40)


def attempt(target: Any, used: Any, call: str, kind: int) -> BaseException | None:
    try:
        (target.calls | ENDS)[call](used, VALUES[kind])
    except ALLOWED as error:
        return error
    except Exception as error:
        if KINDS[kind] is object and "get" in call:  # what is no pickle may fail in any way
            return error
        raise
    return None


def be_struck() -> None:
    """Call everything for a second, whatever happens to the memory."""
    target, kind = TARGETS[sys.argv[1]], int(sys.argv[2])
    used = target.begin(target.create("q", kind))
    rng = random.Random(kind)
    outcomes: dict[str, int] = {}
    print("ready", flush=True)
    end = time.monotonic() + 10
    while time.monotonic() < end and outcomes.get("CorruptSegment", 0) < 20_000:
        call = rng.choice([name for name in target.calls if name != "another"])
        note(outcomes, attempt(target, used, call, kind))
    print(outcomes, flush=True)


def scribble() -> None:
    """Strike until killed."""
    target, rng = TARGETS[sys.argv[1]], random.Random(int(sys.argv[2]))
    with target.raw("q") as raw:
        areas = [area for name, area in target.areas(raw).items() if name not in ("header", "item_text")]
        areas = [(start, end) for start, end, _ in areas if end - start >= 8]
        while True:
            strike(raw.memory, rng, *rng.choice(areas))


def note(outcomes: dict[str, int], error: BaseException | None) -> None:
    key = type(error).__name__ if error is not None else "works"
    outcomes[key] = outcomes.get(key, 0) + 1


if __name__ == "__main__":
    main()
