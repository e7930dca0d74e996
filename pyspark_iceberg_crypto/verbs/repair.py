"""What is wrong with a table that cannot be used as it should, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._data import UNCHECKED
from pyspark_iceberg_crypto.reports._finding import TableFinding
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import advice, plural, visible


@dataclass(frozen=True)
class RepairReport(Report):
    """What is wrong with a table, and what was repaired. It prints as text.

    Attributes:
        table: the table's full name.
        unchecked: whether something could not be examined.
        findings: what was found, the worst first.
    """

    table: str
    unchecked: bool
    findings: list[TableFinding]

    @property
    def left(self) -> list[TableFinding]:
        """What is not repaired."""
        return [one for one in self.findings if not one.repaired]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, or everything was repaired."""
        return not self.left

    @property
    def exit_code(self) -> int:
        """0 it is ok, 1 findings are left, 2 something could not be examined."""
        return UNCHECKED if self.unchecked else super().exit_code


@_terminal.layout.register
def _(found: RepairReport) -> RenderableType:
    parts: list[RenderableType] = []
    for one in found.findings:
        lines = one.lines(*(("✓", "green") if one.repaired else ("✗", "red")))
        parts.append(lines.append(f"\nmeans: {advice(one.consequence)}\n"))
    return Group(*parts, _verdict(found))


def _verdict(found: RepairReport) -> Text:
    table = visible(found.table)
    if not found.findings:
        return Text(
            f"✓ {table}: nothing is wrong with it; to check that all files are encrypted, use verify",
            "green",
        )
    if found.ok:
        return Text(
            f"✓ {table}: {plural(len(found.findings), 'finding')} repaired; verify it now",
            "bold green",
        )
    repairable = sum(one.repairable for one in found.left)
    said = f"✗ {table}: {plural(len(found.left), 'finding')} left"
    return Text(
        said + (f", {repairable} of which can be repaired (confirm)" if repairable else ""),
        "bold red",
    )


def repair_table(spark: SparkSession, table: str, *, confirm: bool = False) -> RepairReport:
    """Say what is wrong with a table that other clients, or a crash, have left unusable; and repair it on request.

    It reads metadata and, of plaintext snapshots, the manifests; the KMS is asked for each KEK. What can be repaired
    is repaired in one commit of metadata. No file is deleted, nothing is rolled back, and nothing is repaired of which
    the table's own keys, or the MAC of its metadata, do not show that it is right.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        confirm: repair what can be repaired. Without it nothing is changed.

    Raises:
        TableNotFoundError: there is no such table.
        NotEncryptedError: it is not encrypted, and never was.
        NotSupportedError: the catalog is not one of this project.
        IcebergCryptoError: the commit was refused. Nothing was changed.
    """
    found = _jvm.run(spark, "repair_table", table=table_name(table), confirm=bool(confirm))
    findings = [TableFinding(table=found["table"], **one) for one in found.pop("findings")]
    return RepairReport(**found, findings=findings)
