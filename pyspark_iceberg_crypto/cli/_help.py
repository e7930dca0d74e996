"""Help: whole sentences, commands by the job that they are for, and names that no line breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class _Formatter(click.HelpFormatter):
    """Breaks lines between words only, not at the hyphens of options and commands."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(_unbroken(prog), _unbroken(args), prefix)

    def write_text(self, text: str) -> None:
        super().write_text(_unbroken(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names and what they mean, in columns that leave room for it in a narrow terminal."""
        most = col_max if self.width > 70 else 16
        super().write_dl([(name, _unbroken(text)) for name, text in rows], most, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-")


def _unbroken(text: str) -> str:
    return text.replace("-", _HYPHEN)


class Context(click.Context):
    """A context whose help is formatted so."""

    formatter_class = _Formatter


class Command(click.Command):
    """A command with its options under titles."""

    context_class = Context

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options that stand below a title of their own, below the command's."""
        return {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their titles."""
        below = self.sections(ctx)
        names = {one.name for options in below.values() for one in options}
        own = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        own = [one for one in own if one.name not in names]
        for title, options in {"Options": own, **below}.items():
            if rows := [row for one in options if (row := one.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Group(click.Group):
    """A group of commands, which its help lists by job.

    Args:
        jobs: the names of its commands, by job; None: all of them are for one.
    """

    context_class = Context
    command_class = Command

    def __init__(
        self, *args: Any, jobs: Mapping[str, Iterable[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.jobs = jobs

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with a whole sentence."""
        for job, names in (self.jobs or {"Commands": self.list_commands(ctx)}).items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(job):
                formatter.write_dl(
                    [(name, one.get_short_help_str(1000)) for name, one in found if one]
                )
