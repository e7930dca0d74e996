"""Other keys for all tables of a catalog or a namespace, and which versions of master keys they need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto import _jvm, _progress
from pyspark_iceberg_crypto._typed import UNTYPED
from pyspark_iceberg_crypto.errors import (
    CancelledError,
    ConfigurationError,
    IcebergCryptoError,
    NotEncryptedError,
    first_line,
)
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._text import plural, visible
from pyspark_iceberg_crypto.rotation import (
    KekRotation,
    MasterKeyRotation,
    rotate_kek,
    rotate_master_key,
)

__all__ = [
    "KeyVersionsReport",
    "MasterKeyVersions",
    "RotationsReport",
    "key_versions_in_use",
    "rotate_catalog",
]

Result = TypeVar("Result")
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class RotationsReport(_terminal.Shown):
    """What a rotation of many tables did, and what is left. It prints as text.

    Attributes:
        target: what was asked for, such as "lake.db".
        done: a rotation for each table that was rotated.
        left: the tables and namespaces that were not, each with table, problem and hint; and tables with value keys
            that another master key than the new one wraps.
        skipped: views, and tables that are not encrypted.
        current: the tables that had the wanted key, in its newest version, already.
    """

    target: str
    done: list[MasterKeyRotation | KekRotation]
    left: list[dict[str, str]]
    skipped: list[str]
    current: list[str]

    @property
    def ok(self) -> bool:
        """Whether no encrypted table is left."""
        return not self.left

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"ok": self.ok, **asdict(self)}


@_terminal.layout.register
def _(found: RotationsReport) -> RenderableType:
    parts: list[RenderableType] = [_terminal.layout(one) for one in found.done]
    parts += map(_left_shown, found.left)
    counts = [plural(len(found.done), "table"), f"{len(found.left):,} left"]
    if found.current:
        counts.append(f"{len(found.current):,} current before")
    counts.append(f"{len(found.skipped):,} skipped")
    text = f"{visible(found.target)}: {', '.join(counts)}"
    parts.append(Text(text, "bold" if found.ok else "bold red"))
    if found.ok and found.current and not found.done:
        parts.append(
            Text("Nothing was rotated: all of them have the newest key already.", "yellow")
        )
    return Group(*parts)


def _left_shown(one: dict[str, str]) -> RenderableType:
    hint = f"\n  {visible(one['hint'])}" if one["hint"] else ""
    return Text(f"✗ {visible(one['table'])}: {visible(one['problem'])}{hint}", "red")


def rotate_catalog(
    spark: SparkSession,
    name: str,
    new_key_id: str | None = None,
    *,
    kek: bool = False,
    rewrap: bool = False,
    from_catalog: str | None = None,
    older_than_days: float | None = None,
    again: bool = False,
    dry_run: bool = False,
    threads: int = 8,
    progress: bool | None = None,
) -> RotationsReport:
    """Rotate each encrypted table of a catalog, or of a namespace and those within it, several at once.

    A table that cannot be rotated does not stop the rest; the report lists it as left. To go on after a crash, run
    it again: tables that have the wanted master key in its newest version are not rotated again, where wrapped keys
    tell the version. A second rotation of a table does no harm.

    Args:
        spark: a session that knows the catalog, which must be one of this project.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        new_key_id: see `rotate_master_key`.
        kek: make a new KEK for each table, see `rotate_kek`; the master key stays.
        rewrap: see `rotate_kek`.
        from_catalog: see `rotate_master_key`. All tables are asked for then.
        older_than_days: with kek: only for tables whose newest KEK is older.
        again: rotate tables that have the wanted key already, too.
        dry_run: see `rotate_master_key`.
        threads: how many tables are rotated at once.
        progress: whether to show on stderr how far it is; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: an argument is wrong, or there is no such catalog or namespace.
    """
    if (kek and (new_key_id is not None or from_catalog is not None)) or (rewrap and not kek):
        raise ConfigurationError(
            "kek, or new_key_id without rewrap: these are two rotations", "call it for one of them"
        )
    if older_than_days is not None and (not kek or older_than_days <= 0):
        raise ConfigurationError(
            f"older_than_days={older_than_days!r}: it is a number of days, with kek", "such as 30"
        )
    rotate: Callable[[SparkSession, str], MasterKeyRotation | KekRotation]
    is_current: Callable[[dict[str, Any]], bool]
    if kek:
        rotate = partial(rotate_kek, rewrap=rewrap, dry_run=dry_run)
        is_current = partial(_has_young_kek, days=older_than_days or 0, alone=rewrap)
    else:
        rotate = partial(
            rotate_master_key, new_key_id=new_key_id, from_catalog=from_catalog, dry_run=dry_run
        )
        newest = _Newest(spark, name)
        is_current = partial(_has_newest, newest=newest, key_id=new_key_id)
    report = RotationsReport(name, [], [], [], [])
    all_of_them = again or from_catalog is not None or (kek and older_than_days is None)
    ask = None if all_of_them else is_current
    one = partial(_rotated, spark, rotate=rotate, is_current=ask)
    for table, result in _each(spark, name, one, report.left, report.skipped, threads, progress):
        if isinstance(result, str):
            report.current.append(table)
        else:
            report.done.append(result)
            if isinstance(result, MasterKeyRotation) and result.value_keys_left:
                report.left.append(_value_keys_left(result))
    return report


def _value_keys_left(done: MasterKeyRotation) -> dict[str, str]:
    return _left(
        done.table,
        f"value keys that other master keys than '{done.new_key_id}' wrap are as they were: {done.value_keys_left}",
        f"who may use these decides who may decrypt; if that is to be '{done.new_key_id}', "
        "CALL rotate_value_key(name => ..., new_key_id => ...) for each",
    )


def _rotated(
    spark: SparkSession,
    table: str,
    *,
    rotate: Callable[[SparkSession, str], MasterKeyRotation | KekRotation],
    is_current: Callable[[dict[str, Any]], bool] | None,
) -> MasterKeyRotation | KekRotation | str:
    """Rotate a table; its name: it was not needed."""
    if is_current is not None and is_current(_use(spark, table)):
        return table
    return rotate(spark, table)


def _use(spark: SparkSession, table: str) -> dict[str, Any]:
    return dict(_jvm.run(spark, "master_key_use", table=table))


def _has_young_kek(use: dict[str, Any], *, days: float, alone: bool) -> bool:
    *older, newest = sorted(use["keks"], key=lambda kek: kek["madeAt"]) or [{"madeAt": 0}]
    young = newest["madeAt"] > time.time() * 1000 - days * _DAY_MS
    return young and not (alone and any(kek["encrypts"] for kek in older))


class _Newest:
    """The versions of master keys that wrap now; the KMS is asked once for each key."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        self._spark = spark
        self._target = target
        self._lock = Lock()
        self._known: dict[str, int | None] = {}

    def of(self, key_id: str) -> int | None:
        """Return the version; None: wrapped keys do not tell."""
        with self._lock:
            if key_id not in self._known:
                self._known[key_id] = _jvm.run(
                    self._spark, "wrapping_version", name=self._target, key_id=key_id
                )
            return self._known[key_id]


def _has_newest(use: dict[str, Any], *, newest: _Newest, key_id: str | None) -> bool:
    """Tell whether all KEKs are wrapped by the wanted key. Where they tell no version, it was asked for by name.

    Value keys are to be wrapped by the wanted key, too, or by their own if none was asked for.
    """
    wanted = use["key_id"] if key_id is None else key_id
    if wanted is None or use["key_id"] != wanted or not use["keks"]:
        return False
    keys = use["keks"] + use["value_keys"]
    of_the_wanted = use["keks"] if key_id is None else keys
    if any(key["masterKeyId"] != wanted for key in of_the_wanted):
        return False
    for key in keys:
        version = newest.of(key["masterKeyId"])
        if key_id is None and version is None:
            return False
        if version is not None and key.get("version") != version:
            return False
    return True


@dataclass(frozen=True)
class MasterKeyVersions:
    """The versions of a master key that tables need.

    Attributes:
        key_id: the master key.
        wraps_now: the version that wraps new KEKs; None: the KMS does not tell, or did not answer.
        in_use: how many tables need a version, by version; for a value key that is the table that keeps it.
        untold: how many tables have KEKs or value keys that do not tell the version (AWS, Google Cloud, Azure).
        problem: why the KMS did not answer; None: it did.
    """

    key_id: str
    wraps_now: int | None
    in_use: dict[int, int]
    untold: int
    problem: str | None


@dataclass(frozen=True)
class KeyVersionsReport(_terminal.Shown):
    """Which versions of master keys the tables of a catalog need. It prints as text.

    Attributes:
        target: what was asked for, such as "lake".
        tables: how many encrypted tables were looked at.
        keys: the master keys, by their ids.
        left: the tables and namespaces that could not be looked at, each with table, problem and hint.
        skipped: views, and tables that are not encrypted.
    """

    target: str
    tables: int
    keys: list[MasterKeyVersions]
    left: list[dict[str, str]]
    skipped: list[str] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether each table could be looked at, and the KMS told all that it knows."""
        return not self.left and all(key.problem is None for key in self.keys)

    def not_needed(self, key_id: str) -> list[int]:
        """Return the versions of a master key that none of these tables needs.

        None are returned where that is not known: a table could not be looked at, or a wrapped key does not tell.
        Other catalogs, older metadata files and jobs that run may still need them.
        """
        key = next((one for one in self.keys if one.key_id == key_id), None)
        if self.left or key is None or key.untold or key.wraps_now is None:
            return []
        return [version for version in range(1, key.wraps_now) if version not in key.in_use]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        found = {"ok": self.ok, **asdict(self)}
        for key in found["keys"]:
            key["in_use"] = {str(version): count for version, count in key["in_use"].items()}
            key["not_needed"] = self.not_needed(key["key_id"])
        return found


@_terminal.layout.register
def _(found: KeyVersionsReport) -> RenderableType:
    parts: list[RenderableType] = []
    for key in found.keys:
        told = [
            f"version {version}: {plural(count, 'table')}"
            for version, count in sorted(key.in_use.items())
        ]
        if key.untold:
            told.append(f"version unknown: {plural(key.untold, 'table')}")
        if key.wraps_now is not None:
            told.append(f"{key.wraps_now} wraps now")
        if unneeded := found.not_needed(key.key_id):
            told.append(f"no table needs {_ranges(unneeded)}")
        if key.problem is not None:
            told.append(f"the KMS did not answer: {visible(key.problem)}")
        parts.append(Text(f"{visible(key.key_id)}: {'; '.join(told)}"))
    parts += map(_left_shown, found.left)
    counts = f"{plural(found.tables, 'table')}, {len(found.left):,} not looked at, {len(found.skipped):,} skipped"
    parts.append(Text(f"{visible(found.target)}: {counts}", "bold" if found.ok else "bold red"))
    return Group(*parts)


def _ranges(versions: list[int]) -> str:
    """Say versions as 1-3, 5."""
    told: list[list[int]] = []
    for version in versions:
        if told and version == told[-1][-1] + 1:
            told[-1] = [told[-1][0], version]
        else:
            told.append([version])
    return ", ".join("-".join(map(str, one)) for one in told)


def key_versions_in_use(
    spark: SparkSession, name: str, *, threads: int = 8, progress: bool | None = None
) -> KeyVersionsReport:
    """Tell which versions of their master keys the tables of a catalog or a namespace need.

    A table costs a load of its metadata; the KMS wraps one trial key with each master key, to tell which version
    wraps now, and gives what loads need where metadata is authenticated. Keystores, Vault and PKCS#11 write the
    version into what they wrap; AWS, Google Cloud and Azure do not, so that only their own logs tell.

    Args:
        spark: a session that knows the catalog, which must be one of this project.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        threads: how many tables are looked at at once.
        progress: whether to show on stderr how far it is; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: there is no such catalog or namespace.
    """
    left: list[dict[str, str]] = []
    skipped: list[str] = []
    tables = 0
    in_use: dict[str, dict[int | None, int]] = {}
    for _, use in _each(spark, name, partial(_use, spark), left, skipped, threads, progress):
        tables += 1
        keys = use["keks"] + use["value_keys"]
        needed = {(key["masterKeyId"], key.get("version")) for key in keys}
        if use["key_id"]:
            in_use.setdefault(use["key_id"], {})
        for key_id, version in needed:
            counts = in_use.setdefault(key_id, {})
            counts[version] = counts.get(version, 0) + 1
    keys = [_versions(_Newest(spark, name), *one) for one in sorted(in_use.items())]
    return KeyVersionsReport(name, tables, keys, left, skipped)


def _versions(newest: _Newest, key_id: str, counts: dict[int | None, int]) -> MasterKeyVersions:
    told = {version: count for version, count in counts.items() if version is not None}
    try:
        now, problem = newest.of(key_id), None
    except IcebergCryptoError as error:
        now, problem = None, error.message
    return MasterKeyVersions(key_id, now, told, counts.get(None, 0), problem)


def _each(
    spark: SparkSession,
    name: str,
    work: Callable[[str], Result],
    left: list[dict[str, str]],
    skipped: list[str],
    threads: int,
    progress: bool | None,
) -> Iterator[tuple[str, Result]]:
    """Do something with each encrypted table, several at once; what was not done is added to left and skipped."""
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"{name!r} cannot be a catalog's name", "for example 'lake'")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ConfigurationError(f"threads={threads!r} is no number of threads", "such as 8")
    tables: list[str] = []
    for one in _jvm.run(spark, "list_tables", name=name):
        if one["view"]:
            skipped.append(one["name"])
        elif one["failure"]:
            left.append(_left(one["name"], one["failure"], one["hint"]))
        else:
            tables.append(one["name"])
    with (
        _progress.counted("tables", len(tables), _progress.is_wanted(progress)) as show,
        ThreadPoolExecutor(max_workers=threads) as pool,
    ):
        results: Iterable[Any] = pool.map(partial(_tried, work), tables)
        try:
            for done, (table, result) in enumerate(zip(tables, results, strict=True), 1):
                show(done)
                if result is None:
                    skipped.append(table)
                elif isinstance(result, _Failed):
                    left.append(_left(table, result.problem, result.hint))
                else:
                    yield table, result
        except BaseException as error:  # the pool would begin the other tables before it ends
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                _jvm.cancel(spark)
            raise


@dataclass(frozen=True)
class _Failed:
    problem: str
    hint: str | None


def _tried(work: Callable[[str], Result], table: str) -> Result | _Failed | None:
    """Do it, or say why that failed; None: the table is not encrypted."""
    try:
        return work(table)
    except NotEncryptedError:
        return None
    except CancelledError:
        raise
    except IcebergCryptoError as error:
        return _Failed(error.message, error.hint)
    except UNTYPED as error:
        return _Failed(first_line(error), "")


def _left(table: str, problem: str, hint: str | None) -> dict[str, str]:
    return {"table": table, "problem": problem, "hint": hint or ""}
