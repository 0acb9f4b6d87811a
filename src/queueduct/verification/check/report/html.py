"""The report: a verdict and its plots as one HTML file."""

from __future__ import annotations

from html import escape

from queueduct.verification.check.report.figures import QUANTILES, Figures
from queueduct.verification.check.report.svg import bars, duration, lines, timeline
from queueduct.verification.check.verdict import Verdict, witness_line
from queueduct.verification.history.format import History

__all__ = ["page"]

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.4em; overflow-wrap: anywhere } h2 { font-size: 1.1em; margin-top: 2em }
.ok { color: #1a7f37 } .bad { color: #c62828 }
table { border-collapse: collapse } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child { text-align: left; padding-left: 0 }
li { margin-bottom: .4em } code { font-size: .85em; overflow-wrap: anywhere }
.plot { overflow-x: auto; margin: 1.2em 0 } svg { display: block; width: 100%; min-width: 640px; height: auto }
"""
SHOWN = 20


def page(history: History, verdict: Verdict, figures: Figures) -> str:
    """Returns a complete page, which loads nothing."""
    seconds = figures.bin_ns * len(figures.occupancy) / 1e9
    a_second = 1e9 / figures.bin_ns
    throughput = {name: counts * a_second for name, counts in figures.ended.items()}
    word = '<span class="ok">passed</span>' if verdict.ok else '<span class="bad">failed</span>'
    capacity = "without a capacity" if history.capacity is None else f"capacity {history.capacity:,}"
    names = [f"p{quantile * 100:g}" if quantile < 1 else "longest" for quantile in QUANTILES]
    parts = [
        f"<h1>{escape(str(history.directory))}: {word}</h1>",
        f"<p>kind {escape(verdict.kind)}, {capacity}, {verdict.operations:,} operations in "
        f"{duration(seconds * 1e9)}, checked by {verdict.check} in {verdict.seconds:.1f} s</p>",
        "<h2>What was proved</h2>" if verdict.ok else "<h2>What was checked</h2>",
        "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in verdict.proved) + "</ul>",
        counts_table(verdict),
    ]
    if verdict.violations:
        parts.append("<h2>Violations</h2>" + violations_table(verdict))
        parts += [timeline(scene) for scene in figures.scenes]
    parts += [
        "<h2>The run</h2>",
        lines("operations a second, over the time of the run", throughput, seconds),
        lines("items in the queue: put, less got", {"items": figures.occupancy}, seconds),
        bars("latency, at each quantile", figures.latencies, names),
    ]
    title = f"queueduct check: {history.directory.name}"
    metas = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f"<head>{metas}<title>{escape(title)}</title><style>{STYLE}</style></head>"
    return f'<!doctype html>\n<html lang="en">{head}<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def counts_table(verdict: Verdict) -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{number:,}</td></tr>" for name, number in verdict.outcomes.items())
    return f"<table><tr><th>operation</th><th>number</th></tr>{rows}</table>"


def violations_table(verdict: Verdict) -> str:
    counts = "".join(f"<tr><td>{escape(rule)}</td><td>{number:,}</td></tr>" for rule, number in verdict.counts.items())
    listed = "".join(
        f"<li><b>{escape(violation.rule)}</b>: {escape(violation.why)}<br>"
        + "<br>".join(f"<code>{escape(witness_line(witness))}</code>" for witness in violation.witnesses)
        + "</li>"
        for violation in verdict.violations[:SHOWN]
    )
    return f"<table><tr><th>rule</th><th>violations</th></tr>{counts}</table><ol>{listed}</ol>"
