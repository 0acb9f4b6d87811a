"""The results as JSON: the shape is described in README.md beside this file."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.case import Plan
from benchmarks.rounds import Entry, Measured, Verdict

SCHEMA = 1


def as_json(measured: list[Measured], plan: Plan, about: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return everything that was measured, ready to be written."""
    return {
        "schema": SCHEMA,
        **about,
        "quick": plan.quick,
        "rounds": plan.rounds,
        "seconds": round(seconds, 1),
        "rows": [_row(one) for one in measured],
    }


def _row(measured: Measured) -> dict[str, Any]:
    case = measured.case
    return {
        "row": case.name,
        "placement": case.placement or None,
        "title": case.title,
        "unit": case.unit,
        "higher_is_better": case.higher_is_better,
        "entries": [_entry(entry) for entry in measured.entries],
        "goals": [_goal(verdict) for verdict in measured.verdicts],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    contender = entry.contender
    return {
        "name": contender.name,
        "ours": contender.ours,
        "status": entry.status,
        "why": entry.why or None,
        "capacity": contender.capacity or None,
        "note": contender.note or None,
        "amount": entry.amount,
        "median": entry.median if entry.samples else None,
        "values": entry.values,
        "details": entry.details(),
    }


def _goal(verdict: Verdict) -> dict[str, Any]:
    return {
        "goal": verdict.text,
        "wanted": verdict.goal.wanted,
        "kind": verdict.goal.kind,
        "ratio": verdict.ratio,
        "least": verdict.least,
        "most": verdict.most,
        "reached": verdict.reached,
    }


def write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write the file under another name first, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
