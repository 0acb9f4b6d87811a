"""The plot of a demonstration: ticks put and archived, and how long each batch took them. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from queueduct.demo.check import Account

__all__ = ["can_plot", "draw_plot"]


def can_plot() -> bool:
    try:
        import matplotlib  # noqa: F401  # is it there?
    except ImportError:
        return False
    return True


def draw_plot(account: Account, path: Path) -> None:
    """Draws both over time. What is archived comes in steps, since a batch is seen as a whole."""
    import matplotlib

    matplotlib.use("Agg")  # a file, no window
    from matplotlib import pyplot

    figure, (flow, latency) = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    put, archived = account.put_over_time, account.archived_over_time
    flow.plot([moment for moment, _ in put], [rows / 1e3 for _, rows in put], label="put")
    flow.step([moment for moment, _ in archived], [rows / 1e3 for _, rows in archived], where="post", label="archived")
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
        for moment, _ in account.killed:
            axes.axvline(moment, color="grey", linestyle=":", linewidth=1)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
