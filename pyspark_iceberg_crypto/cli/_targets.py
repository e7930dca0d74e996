"""Commands for one table, for several, and for all of a namespace or a catalog."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.text import Text

from pyspark_iceberg_crypto._names import SESSION_CATALOG, is_path, is_whole, parts
from pyspark_iceberg_crypto.cli import _session, _shared
from pyspark_iceberg_crypto.errors import NotEncryptedError
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import plural, visible

if TYPE_CHECKING:  # commands that manage keys run without Spark
    from pyspark.sql import SparkSession

# The worst of several outcomes is the exit code's.
_WORST_LAST = (_shared.OK, _shared.UNCHECKED, _shared.PROBLEM)

targets = click.argument("targets", nargs=-1, required=True, metavar="TARGET...")


def catalog_of(target: str) -> str:
    """Return the catalog's name in the full name of a table, or of many."""
    if is_path(target):
        return "lake"  # any: a path has none
    found = parts(target)
    return found[0] if len(found) > 2 or is_whole(target) else SESSION_CATALOG


def catalogs_of(targets: Sequence[str]) -> list[str]:
    """Return the names of the catalogs of several targets, each once."""
    return list(dict.fromkeys(map(catalog_of, targets)))


def opened(
    targets: Sequence[str], also: Sequence[str] = ()
) -> AbstractContextManager[SparkSession]:
    """Open a session with the catalogs of several targets; see `_session.session`."""
    needed = catalogs_of([target for target in targets if not is_path(target)])
    return _session.session(catalogs_of(targets), also, [*needed, *also])


@dataclass(frozen=True)
class _Target:
    """What to do something to.

    Attributes:
        name: a table, or what has a result of its own for a namespace or a catalog.
        of_many: whether it was not named itself.
        problem: why it could not be listed; empty: it was.
    """

    name: str
    of_many: bool = False
    problem: dict[str, str] = field(default_factory=dict)


def changes(
    targets: Sequence[str],
    do: Callable[[SparkSession, str, bool], Report],
    confirm: bool,
    output: str,
    more: Callable[[Any], str] = lambda _: "",
    skip: Callable[[SparkSession, str], str] = lambda *_: "",
    pending: Callable[[Any], bool] = lambda _: True,
) -> NoReturn:
    """Change each table in a session, show what was done, and end with the worst exit code.

    If one fails, the others are still processed.

    Args:
        targets: tables, namespaces (lake.db.*) and catalogs (lake). Of these, tables are skipped that are not
            encrypted, where that makes an error.
        do: changes a table, or only says what that would do; with a report as result.
        confirm: whether to change them; see `confirmed`.
        output: "text" or "json". JSON is one object for one table, and a list of them for several or many.
        more: text to print after a result, as it is.
        skip: why a table of several is skipped; empty if it is not.
        pending: whether a report of what would be done says that there is something to do.
    """
    with _shared.errors_told(), opened(targets) as spark:
        listed = list(_tables(spark, targets))

        def one(target: _Target, confirm: bool) -> Any:
            try:
                if target.of_many and (why := skip(spark, target.name)):
                    return _Skipped(target.name, why)
                return do(spark, target.name, confirm)
            except NotEncryptedError as error:
                if target.of_many:
                    return _Skipped(target.name, error.message)
                raise

        ended = confirmed(
            lambda confirm: _each(
                listed, lambda t: one(t, confirm), output, more, pending, not confirm
            ),
            confirm,
            output,
        )
    sys.exit(ended)


confirm_option = click.option(
    "--confirm",
    is_flag=True,
    help="Do it. Without this option, the command says what it would do, and asks in a terminal.",
)


def confirmed(do: Callable[[bool], tuple[int, bool]], confirm: bool, output: str) -> int:
    """Do something that changes tables, if the user confirms it; otherwise show what it would do, and ask.

    Args:
        do: does it, or with False only shows what it would do; returns the exit code, and whether there is
            something to do.
        confirm: whether the command line confirms it.
        output: "text" or "json". With JSON, which is one document, nobody is asked; nor is without a terminal, of
            which standard error shows the question.
    """
    code, pending = do(confirm)
    if confirm or not pending:
        return code
    if output == "text" and all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)):
        if click.confirm("Do this?", err=True):
            return do(True)[0]
    else:
        click.echo("Nothing was changed. Add --confirm to do this.", err=True)
    return code


def each_whole(
    targets: Sequence[str],
    do: Callable[[str], Report],
    output: str,
    pending: Callable[[Any], bool] = lambda _: True,
    is_dry: bool = False,
) -> tuple[int, bool]:
    """Do something in a session that is there, where a namespace or a catalog has a result of its own.

    Args:
        targets: tables, namespaces and catalogs.
        do: does it to one of them, with a report as result.
        output: "text" or "json".
        pending: see `changes`.
        is_dry: whether it only says what would be done.

    Returns:
        the exit code, the worst one; and whether one of the results is pending.

    Raises:
        IcebergCryptoError: of the only target that was asked for.
    """
    listed = [_Target(t) for t in targets]
    return _each(listed, lambda t: do(t.name), output, lambda _: "", pending, is_dry)


@dataclass(frozen=True)
class _Skipped:
    """A table of several to which the command does not apply."""

    table: str
    skipped: str
    exit_code = _shared.OK

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __rich__(self) -> Text:
        return Text(f"· {visible(self.table)}: skipped: {visible(self.skipped)}", "dim")


def _tables(spark: SparkSession, targets: Sequence[str]) -> Iterator[_Target]:
    """Go through the tables, and through what could not be listed."""
    from pyspark_iceberg_crypto.jvm import _jvm

    for target in targets:
        if not is_whole(target):
            yield _Target(target)
            continue
        for one in _jvm.run(spark, "list_tables", name=target):
            if not one["view"]:
                told = {"problem": one["failure"], "hint": one["hint"] or ""}
                yield _Target(one["name"], True, told if one["failure"] else {})


def _each(
    targets: list[_Target],
    do: Callable[[_Target], Any],
    output: str,
    more: Callable[[Any], str],
    pending: Callable[[Any], bool],
    is_dry: bool,
) -> tuple[int, bool]:
    is_one = len(targets) == 1 and not targets[0].of_many
    codes, told, left, is_pending = [_shared.OK], [], 0, False
    for number, target in enumerate(targets, start=1):
        if not is_one and sys.stderr.isatty():
            click.echo(f"{number} of {_count(targets)}: {visible(target.name)}", err=True)
        problem = target.problem
        try:
            result: Any = None if problem else do(target)
        except Exception as error:
            if is_one:
                raise
            message, hint = _shared.told(error)
            result, problem = None, {"problem": message, "hint": hint}
        left += bool(problem)
        is_done = not problem and not isinstance(result, _Skipped)
        is_pending = is_pending or (is_done and pending(result))
        codes.append(_shared.UNCHECKED if problem else result.exit_code)
        told.append({"table": target.name, **problem} if problem else result.to_dict())
        if output == "text":
            _shared.show(_terminal.left(target.name, **problem) if problem else result)
            if is_done and (said := more(result)):
                _shared.show(Text(said))
    if output == "json":
        _shared.show_json(told[0] if is_one else told)
    elif not is_one:
        ended = f"{left:,} failed, nothing changed" if is_dry else f"{left:,} not done"
        _shared.show(Text(f"{_count(targets)}, {ended}", "bold"))
    return max(codes, key=_WORST_LAST.index), is_pending


def _count(targets: list[_Target]) -> str:
    """Say how many there are: namespaces and catalogs with a result of their own are no tables."""
    is_whole_one = any(is_whole(one.name) and not one.problem for one in targets)
    return plural(len(targets), "target" if is_whole_one else "table")
