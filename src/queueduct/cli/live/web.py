"""The subcommand ``web``: all queues as a page, for a browser on this host."""

from __future__ import annotations

from pathlib import Path

import click

from queueduct.cli.live.keys import Stopped, stopping_on_signals
from queueduct.cli.live.top import seconds_option
from queueduct.cli.options import IN
from queueduct.monitoring import Monitor

__all__ = ["web"]


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct web\n"
    "  queueduct web --port 0 --allow-actions\n"
    "  queueduct web --token-file ~/.queueduct-token\n"
    "\n\b\n"
    "Then, for scripts and Prometheus:\n"
    '  key="Authorization: Bearer $(cat ~/.queueduct-token)"\n'
    '  curl -s -H "$key" localhost:8321/metrics\n'
    "  curl -s -H \"$key\" localhost:8321/api/queues | jq '.queues[].name'\n"
)
@click.option("--port", default=8321, show_default=True, type=click.IntRange(0, 65535), help="0 is any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--allow-actions", is_flag=True, help="Let the page shut down, clear and remove queues.")
@click.option("--show-items", is_flag=True, help="Let the page show the last items of logs and feeds.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of the token; made if it is not there. Without it each start has a new token.",
)
@click.option("--no-token", is_flag=True, help="Show counters to all users of this host; actions and items need it.")
@click.option("--allow-remote", is_flag=True, help="Let --host be an address that other machines reach.")
@seconds_option
@IN
def web(
    port: int,
    host: str,
    allow_actions: bool,
    show_items: bool,
    token_file: Path | None,
    no_token: bool,
    allow_remote: bool,
    seconds: float,
    directory: Path | None,
) -> None:
    """Show all queues as a page, live, with /metrics for Prometheus and /api for scripts.

    It listens on this host only, and changes nothing unless --allow-actions is given. Whoever has the token, which is
    in the printed address, sees the queues; other users of this host do not. Goes on until Ctrl-C.
    """
    from queueduct.web.access import Access
    from queueduct.web.server import bound
    from queueduct.web.service import Service

    access = Access.made(
        host,
        is_remote=allow_remote,
        actions=allow_actions,
        items=show_items,
        is_open=no_token,
        token_file=token_file,
    )
    try:
        with stopping_on_signals(), Monitor(directory, interval=seconds, window=max(5.0, 4 * seconds)) as monitor:
            service = Service(monitor)
            with bound(host, port, service, access) as server, service:
                click.echo(f"queues of {monitor.directory}: {server.url}  (Ctrl-C ends it)")
                server.serve_forever()
    except Stopped:  # which is how it ends
        click.echo("stopped", err=True)
