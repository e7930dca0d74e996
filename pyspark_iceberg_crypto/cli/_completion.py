"""``completion``: the script that makes a shell complete this command's words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._help import Command

PROGRAM = "iceberg-crypto"
VARIABLE = "_ICEBERG_CRYPTO_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes this command in a shell.

    It completes commands, options and their values.

    \b
    Examples:
      eval "$(iceberg-crypto completion bash)"
      eval "$(iceberg-crypto completion zsh)"
      iceberg-crypto completion fish | source

    They belong into ~/.bashrc, into ~/.zshrc after compinit, and into ~/.config/fish/config.fish.

    Exit codes: 0 it is printed, 2 it could not be, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    kind = get_completion_class(shell)
    with _shared.errors_told():
        assert kind is not None, shell  # noqa: S101 (click has these three)
        click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
