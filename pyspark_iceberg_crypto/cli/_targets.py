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


def act(
    targets: Sequence[str],
    do: Callable[[SparkSession, str], Report],
    output: str,
    more: Callable[[Any], str] = lambda _: "",
    skip: Callable[[SparkSession, str], str] = lambda *_: "",
) -> NoReturn:
    """Do something to each table in a session, show what was done, and end with the worst exit code.

    If one fails, the others are still processed.

    Args:
        targets: tables, namespaces (lake.db.*) and catalogs (lake). Of these, tables are skipped that are not
            encrypted, where that makes an error.
        do: what to do to a table, with a report as result.
        output: "text" or "json". JSON is one object for one table, and a list of them for several or many.
        more: text to print after a result.
        skip: why a table of several is skipped; empty if it is not.
    """
    with _shared.errors_told(), opened(targets) as spark:

        def one(target: _Target) -> Any:
            if target.of_many and (why := skip(spark, target.name)):
                return _Skipped(target.name, why)
            try:
                return do(spark, target.name)
            except NotEncryptedError as error:
                if target.of_many:
                    return _Skipped(target.name, error.message)
                raise

        ended = _each(list(_tables(spark, targets)), one, output, more)
    sys.exit(ended)


def act_whole(targets: Sequence[str], do: Callable[[str], Report], output: str) -> int:
    """Do the same in a session that is there, where a namespace or a catalog has a result of its own.

    Returns:
        the exit code: the worst one.

    Raises:
        IcebergCryptoError: of the only target that was asked for.
    """
    return _each([_Target(t) for t in targets], lambda t: do(t.name), output, lambda _: "")


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
) -> int:
    is_one = len(targets) == 1 and not targets[0].of_many
    codes, told, left = [_shared.OK], [], 0
    for number, target in enumerate(targets, start=1):
        if not is_one and sys.stderr.isatty():
            click.echo(f"{number} of {len(targets)}: {visible(target.name)}", err=True)
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
        codes.append(_shared.UNCHECKED if problem else result.exit_code)
        told.append({"table": target.name, **problem} if problem else result.to_dict())
        if output == "text":
            _shared.show(_terminal.left(target.name, **problem) if problem else result)
            if is_done and (said := more(result)):
                _shared.show(said)
    if output == "json":
        _shared.show_json(told[0] if is_one else told)
    elif not is_one:
        _shared.show(Text(f"{plural(len(told), 'target')}, {left} left", "bold"))
    return max(codes, key=_WORST_LAST.index)
