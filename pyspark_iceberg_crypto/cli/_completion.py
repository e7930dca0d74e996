"""``completion``: the script that makes a shell complete this command's words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pyspark_iceberg_crypto.cli import _shared

PROGRAM = "iceberg-crypto"
VARIABLE = "_ICEBERG_CRYPTO_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and their values in a SHELL.

    \b
    Examples:
      eval "$(iceberg-crypto completion bash)"       in ~/.bashrc
      eval "$(iceberg-crypto completion zsh)"        in ~/.zshrc, after compinit
      iceberg-crypto completion fish | source        in ~/.config/fish/config.fish

    Exit code: 0 it is printed, 2 it could not be, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    kind = get_completion_class(shell)
    with _shared.errors_told():
        assert kind is not None, shell  # noqa: S101 (click has these three)
        click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
