"""A table of ours and its plaintext twin: what is said to both, and what was said so far."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto._names import quoted
from twin import java
from twin.values import Column, literal


class Refused(Exception):  # noqa: N818 (no error: a step that both tables refuse)
    """Both tables refuse the same statement: the step is over."""


class Difference(AssertionError):  # noqa: N818
    """The two tables do not agree."""


class Phase(Enum):
    """How far our table is."""

    PLAIN = "plaintext"
    COPYING = "plaintext, of which encrypt_table has copied a portion"
    SWITCHED = "encrypted, and the plaintext is still there"
    ENCRYPTED = "encrypted"


@dataclass
class Side:
    """One of the two tables, as a session names it."""

    spark: SparkSession
    catalog: str
    namespace: str
    name: str

    @property
    def table(self) -> str:
        return f"{self.catalog}.{self.namespace}.{quoted(self.name)}"

    @property
    def argument(self) -> str:
        """The table as an argument of a procedure."""
        return literal(f"{self.namespace}.{quoted(self.name)}")

    def sql(self, statement: str) -> list[Row]:
        return self.spark.sql(statement).collect()

    def refresh(self) -> None:
        self.sql(f"REFRESH TABLE {self.table}")

    def metadata(self) -> dict[str, Any]:
        return java.metadata(self.spark, self.table)

    def most_manifests(self) -> int:
        """How many manifests of one content main has, of the table's partition spec."""
        spec = self.metadata()["default-spec-id"]
        manifests = f"{self.table}.manifests WHERE partition_spec_id = {spec} GROUP BY content"
        return max((row[0] for row in self.sql(f"SELECT count(*) FROM {manifests}")), default=0)


def file_of(location: str) -> Path:
    """The local file or folder that metadata names: a partition's "%2F" is on the disk, too."""
    return Path(location.removeprefix("file:"))


def location_of(metadata: dict[str, Any]) -> Path:
    return file_of(str(metadata["location"]))


@dataclass
class Pair:
    """Both tables, and what an operation needs to know of them.

    Attributes:
        kind: the catalog behind ours.
        columns: those that both have.
        snapshots: the twin's and ours, which show the same, oldest first.
        staged: WAP ids that are not published.
        relaid: ours has made commits that the twin has not, so manifests may list its files in another way.
        portable: ours has made no commit that the twin has not, nor both an upgrade: numbers of both are equal.
        orphaned: files were written in plaintext that no commit has.
        folders: where our table has, and had, its files.
        script: what was run, as Python that can be pasted.
    """

    kind: str
    ours: Side
    twin: Side
    folder: Path
    columns: list[Column]
    phase: Phase
    version: int
    key: str = "k1"
    snapshots: list[tuple[int, int]] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)
    partitioned: list[str] = field(default_factory=list)
    relaid: bool = False
    portable: bool = True
    orphaned: bool = False
    folders: list[Path] = field(default_factory=list)
    script: list[str] = field(default_factory=list)
    counter: int = 0

    @property
    def spark(self) -> SparkSession:
        return self.ours.spark

    @property
    def encrypted(self) -> bool:
        return self.phase in (Phase.SWITCHED, Phase.ENCRYPTED)

    @property
    def by_role(self) -> dict[str, Column]:
        return {column.role: column for column in self.columns if column.role}

    def next(self) -> int:
        self.counter += 1
        return self.counter

    def both(self, template: str, *, catalog: str | None = None, **values: Any) -> list[Any]:
        """A statement on the twin, then on ours.

        Args:
            template: {t} is the table, {catalog} its catalog, {argument} the table for a procedure.
            catalog: another that ours is written through.
            values: a tuple has the twin's value and ours.

        Raises:
            Refused: both refuse it.
            Difference: one of them does.
        """
        return self.each(lambda side, i: self._sql(side, template, i, catalog, values))

    def each(self, run: Callable[[Side, int], Any]) -> list[Any]:
        """What is said to the twin, then to ours: both take it, or neither."""
        results: list[Any] = []
        for i, side in enumerate((self.twin, self.ours)):
            try:
                results.append(run(side, i))
            except Exception as error:  # noqa: BLE001 (Java's)
                self.script[-1] += f"  # {_first_line(error)}"
                results.append(error)
        failed = [isinstance(result, Exception) for result in results]
        if all(failed):
            raise Refused(str(results[0])[:300])
        if any(failed):
            which = "ours" if failed[1] else "the twin"
            raise Difference(f"only {which} refuses it") from results[failed.index(True)]
        return results

    def _sql(
        self, side: Side, template: str, i: int, catalog: str | None, values: dict[str, Any]
    ) -> list[Row]:
        chosen = {k: v[i] if isinstance(v, tuple) else v for k, v in values.items()}
        named = side if catalog is None or i == 0 else Side(**{**vars(side), "catalog": catalog})
        statement = template.format(
            t=named.table, catalog=named.catalog, argument=named.argument, **chosen
        )
        self.script.append(f"spark.sql({statement!r})")
        rows = side.sql(statement)
        if named is not side:
            side.refresh()
        return rows

    def call(self, procedure: str, arguments: str = "", **values: Any) -> list[Any]:
        """A procedure of Iceberg's, on both."""
        return self.both(_call(procedure, arguments), **values)

    def ours_alone(self, template: str, **values: Any) -> list[Row]:
        """A statement that has no sense on the twin."""
        return self._sql(self.ours, template, 1, None, values)

    def python(self, side: Side, expression: str) -> Any:
        """Runs an expression, in which {t} is the table's name."""
        text = expression.replace("{t}", repr(side.table))
        self.script.append(text)
        names = {**vars(pyspark_iceberg_crypto), **vars(java), "spark": self.spark}
        for name in pyspark_iceberg_crypto.__all__:
            if name in text:
                names[name] = getattr(pyspark_iceberg_crypto, name)
        return eval(text, names)

    @contextmanager
    def configured(self, setting: str, value: str) -> Iterator[None]:
        self.script.append(f"spark.conf.set({setting!r}, {value!r})")
        self.spark.conf.set(setting, value)
        try:
            yield
        finally:
            self.script.append(f"spark.conf.unset({setting!r})")
            self.spark.conf.unset(setting)

    def remove(self) -> None:
        """The files of both; the catalogs' entries stay."""
        for folder in (*self.folders, location_of(self.twin.metadata())):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _call(procedure: str, arguments: str) -> str:
    return (
        "CALL {catalog}.system."
        + procedure
        + "(table => {argument}"
        + (f", {arguments})" if arguments else ")")
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
