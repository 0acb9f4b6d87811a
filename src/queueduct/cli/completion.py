"""The subcommand ``completion``: what a shell needs to complete commands, options, and names of queues and readers."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

VARIABLE = "_QUEUEDUCT_COMPLETE"


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct completion bash\n"
    "\n\b\n"
    "To have it in every shell:\n"
    "  bash:  queueduct completion bash >> ~/.bashrc\n"
    "  zsh:   queueduct completion zsh >> ~/.zshrc\n"
    "  fish:  queueduct completion fish > ~/.config/fish/completions/queueduct.fish\n"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete queueduct's commands, options, queues and readers."""
    root = click.get_current_context().find_root().command
    maker = get_completion_class(shell)
    assert maker is not None, "click knows these three"
    made = maker(root, {}, "queueduct", VARIABLE)
    click.echo(made.source_template % made.source_vars())
