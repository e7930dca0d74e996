"""Other keys for all tables of a catalog or a namespace, and which versions of master keys they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._data import OK, UNCHECKED
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import plural, visible
from pyspark_iceberg_crypto.verbs import _progress
from pyspark_iceberg_crypto.verbs.rotation import RotateKekReport, RotateMasterKeyReport


@dataclass(frozen=True)
class RotateCatalogReport(Report):
    """What a rotation of many tables did, and what is left. It prints as text.

    Attributes:
        target: what was asked for, such as "lake.db".
        done: a rotation for each table that was rotated.
        left: the tables and namespaces that were not, each with table, problem and hint; tables with value keys
            that another master key than the new one wraps; and with a new key id the namespaces, and the catalog, that
            still give new tables another one.
        skipped: views, and tables that are not encrypted.
        current: the tables that had the wanted key, in its newest version, already.
    """

    target: str
    done: list[RotateMasterKeyReport | RotateKekReport]
    left: list[dict[str, str]]
    skipped: list[str]
    current: list[str]

    @property
    def ok(self) -> bool:
        """Whether nothing is left."""
        return not self.left

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {**super().to_dict(), "done": [one.to_dict() for one in self.done]}


@_terminal.layout.register
def _(found: RotateCatalogReport) -> RenderableType:
    shown = found.done[: _terminal.SHOWN_PROBLEMS]
    parts: list[RenderableType] = [_terminal.layout(one) for one in shown]
    parts += _terminal.not_shown(len(found.done) - len(shown), "report.done has them")
    parts += _terminal.all_left(found.left)
    counts = [plural(len(found.done), "table"), f"{len(found.left):,} left"]
    if found.current:
        counts.append(f"{len(found.current):,} current before")
    counts.append(f"{len(found.skipped):,} skipped")
    text = f"{visible(found.target)}: {', '.join(counts)}"
    parts.append(Text(text, "bold" if found.ok else "bold red"))
    if found.ok and found.current and not found.done:
        parts.append(
            Text("Nothing was rotated: all of them already have the newest key.", "yellow")
        )
    return Group(*parts)


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
) -> RotateCatalogReport:
    """Rotate each encrypted table of a catalog, or of a namespace and those within it, several at once.

    If a table cannot be rotated, the others still are; the report lists it as left. To continue after a crash, run
    it again: tables that have the wanted master key in its newest version are not rotated again, where wrapped keys
    contain the version. A second rotation of a table is harmless.

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
        progress: whether to show progress on stderr; None: in a terminal and in a notebook.

    Raises:
        TableNotFoundError: there is no such namespace.
        ConfigurationError: an argument is wrong, or there is no such catalog.
    """
    kind = RotateKekReport if kek else RotateMasterKeyReport
    found = _progress.run(
        spark,
        str(name),
        progress,
        "rotate_catalog",
        name=str(name),
        new_key_id=new_key_id,
        kek=kek,
        rewrap=rewrap,
        from_catalog=from_catalog,
        older_than_days=older_than_days,
        again=again,
        dry_run=dry_run,
        threads=threads,
    )
    done = [kind(**one) for one in found.pop("done")]
    return RotateCatalogReport(str(name), done, **found)


@dataclass(frozen=True)
class MasterKeyVersions:
    """The versions of a master key that tables need.

    Attributes:
        key_id: the master key.
        wraps_now: the version that wraps new KEKs; None: the KMS does not report it, or did not answer.
        in_use: how many tables need a version, by version; for a value key that is the table that keeps it.
        untold: how many tables have KEKs or value keys that do not contain the version (AWS, Google Cloud, Azure).
        problem: why the KMS did not answer; None: it did.
    """

    key_id: str
    wraps_now: int | None
    in_use: dict[int, int]
    untold: int
    problem: str | None


@dataclass(frozen=True)
class KeyVersionsReport(Report):
    """Which versions of master keys the tables of a catalog need. It prints as text.

    Attributes:
        target: what was asked for, such as "lake".
        tables: how many encrypted tables were looked at.
        keys: the master keys, by their ids.
        left: the tables and namespaces that could not be examined, each with table, problem and hint.
        skipped: views, and tables that are not encrypted.
        unlisted: why tables that are not listed may need other versions (Nessie's branches); None: no reason is known.
    """

    target: str
    tables: int
    keys: list[MasterKeyVersions]
    left: list[dict[str, str]]
    skipped: list[str] = field(repr=False)
    unlisted: str | None = None

    @property
    def ok(self) -> bool:
        """Whether each table could be looked at, and the KMS answered for each key."""
        return not self.left and all(key.problem is None for key in self.keys)

    def not_needed(self, key_id: str) -> list[int]:
        """Return the versions of a master key that none of these tables needs.

        Returns none if that is not known: a table could not be loaded, a wrapped key does not contain its version, or
        other branches of the catalog may need it (`unlisted`).
        Other catalogs, older metadata files and jobs that run may still need them.
        """
        key = next((one for one in self.keys if one.key_id == key_id), None)
        if self.left or self.unlisted or key is None or key.untold or key.wraps_now is None:
            return []
        return [version for version in range(1, key.wraps_now) if version not in key.in_use]

    @property
    def exit_code(self) -> int:
        """0 it is ok, 2 something could not be examined."""
        return OK if self.ok else UNCHECKED

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        found = super().to_dict()
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
    if found.unlisted is not None:
        parts.append(Text(visible(found.unlisted)))
    parts += _terminal.all_left(found.left)
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
    """Find out which versions of their master keys the tables of a catalog or a namespace need.

    A table costs a load of its metadata; the KMS wraps one trial key with each master key, to show which version
    wraps now, and gives what loads need where metadata is authenticated. Keystores, Vault and PKCS#11 write the
    version into what they wrap; AWS, Google Cloud and Azure do not, so only their own logs show it.

    Args:
        spark: a session that knows the catalog, which must be one of this project.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        threads: how many tables are looked at at once.
        progress: whether to show progress on stderr; None: in a terminal and in a notebook.

    Raises:
        TableNotFoundError: there is no such namespace.
        ConfigurationError: there is no such catalog.
    """
    found = _progress.run(
        spark, str(name), progress, "key_versions_in_use", name=str(name), threads=threads
    )
    keys = [_of_key(**one) for one in found.pop("keys")]
    return KeyVersionsReport(str(name), keys=keys, **found)


def _of_key(in_use: dict[str, int], **told: Any) -> MasterKeyVersions:
    return MasterKeyVersions(in_use={int(one): count for one, count in in_use.items()}, **told)
