"""The plot: ticks put and archived, and how long each batch took them, over time."""

from __future__ import annotations

from pathlib import Path

from queueduct.demo.check import Account

__all__ = ["draw"]


def draw(account: Account, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # a file, no window
    from matplotlib import pyplot

    figure, (flow, latency) = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    for label, points in (("put", account.put_over_time), ("archived", account.archived_over_time)):
        flow.plot([moment for moment, _ in points], [rows / 1e3 for _, rows in points], label=label)
    flow.set_ylabel("thousand ticks")
    flow.set_title(f"{account.rows:,} ticks, {account.rows_per_second:,.0f} a second", loc="left")
    flow.legend(frameon=False)
    moments = [moment for moment, _, _ in account.latency_over_time]
    latency.plot(moments, [half for _, half, _ in account.latency_over_time], label="p50")
    latency.plot(moments, [most for _, _, most in account.latency_over_time], label="p99")
    latency.set_ylim(bottom=0)
    latency.set_ylabel("seconds from tick to archive")
    latency.set_xlabel("seconds")
    latency.legend(frameon=False)
    for axes in (flow, latency):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
