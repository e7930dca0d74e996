"""The demo's course, and what it shows on the way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyspark_iceberg_crypto import IcebergCryptoError, VerifyReport, verify_table
from pyspark_iceberg_crypto.demo import flights
from pyspark_iceberg_crypto.demo.other_process import answer
from pyspark_iceberg_crypto.demo.place import CATALOG, ENCRYPTED, KEY, PLAIN, Place
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.jvm._typed import typed_errors
from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._layout import Indented, Screen, hinted
from pyspark_iceberg_crypto.reports._text import advice

Result = TypeVar("Result")
STEPS = 9
START = {
    "hive": "Start Spark with an embedded Hive metastore",
    "hadoop": "Start Spark with a Hadoop catalog",
}
CHANGED_BY = {"merge-on-read": "deletion vectors", "copy-on-write": "copy-on-write"}
SHOWN_BYTES = 48


def run(keep: bool = False, console: Console | None = None) -> Path | None:
    """Run the demo in a new temporary folder, and remove the folder unless `keep` is set.

    Args:
        keep: keep the folder.
        console: where it prints; None: standard output.

    Returns:
        The folder, if it was kept.

    Raises:
        IcebergCryptoError: a step failed, or its result is not what it must be. The folder then stays.
    """
    console = console or Screen()
    place = Place(Path(tempfile.mkdtemp(prefix="iceberg-crypto-demo-")))
    console.print(f"All files of this demo are in {place.folder}", soft_wrap=True)
    try:
        _Story(console, place).tell()
    except BaseException:
        console.print(f"The demo stopped; Spark's output is in {place.log}", soft_wrap=True)
        raise
    if keep:
        console.print(f"Kept: {place.folder} (tables, keystores and passwords)", soft_wrap=True)
        return place.folder
    shutil.rmtree(place.folder)
    console.print(
        f"Removed {place.folder}. Only Spark's own cache of downloaded jars (~/.ivy2*) stays.",
        soft_wrap=True,
    )
    return None


@dataclass
class _Story:
    console: Console
    place: Place
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    details: list[RenderableType] = field(default_factory=list)

    def tell(self) -> None:
        """Go through the steps, in the order of a table's life."""
        csv = flights.unpack(self.place.folder)
        self.step("Make a keystore with one AES-256 master key", self.make_keys)
        spark = self.step(START[self.place.catalog_type], self.place.session, "owner")
        try:
            self.step(f"Create {ENCRYPTED}, encrypted with key {KEY!r}", self.create, spark)
            rows = self.step("Load the flights of 2013", self.load, spark, csv)
            how = CHANGED_BY[self.place.write_mode]
            self.step(f"Update and delete rows ({how})", self.change, spark)
            report = self.step("Verify every file", self.verify, spark)
            data_file = self.step("Compare with a plaintext table", self.show_bytes, spark, report)
            known = answer(spark)
            report.close()
        finally:
            _jvm.shut_down(spark)
        self.step("Read it again in a second process", self.read_again, known)
        refusals = self.step("Try without the key, in a third process", self.refused, data_file)
        self.summary(rows, sum(row[1] for row in known), report, refusals)

    def step(self, title: str, action: Callable[..., Result], *arguments: Any) -> Result:
        """Run a step under a spinner; then say how long it took, and print what it has to show."""
        self.steps += 1
        start = time.monotonic()
        line = Text.assemble(("✓ ", "green"), (f"{self.steps}/{STEPS} ", "dim"), (title, "bold"))
        try:
            with self.console.status(Text(f"{self.steps}/{STEPS} {title}")):
                result = action(*arguments)
        except BaseException:
            line = Text(f"✗ {self.steps}/{STEPS} {title}", "bold red")
            raise
        finally:
            self.console.print(line.append(f"  {time.monotonic() - start:.1f} s", "dim"))
            for detail in self.details:
                self.console.print(Indented(detail, 6))
            self.details.clear()
        return result

    def show(self, detail: RenderableType) -> None:
        """Keep something to print once the running step is done."""
        self.details.append(Text(detail) if isinstance(detail, str) else detail)

    def require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise IcebergCryptoError(
                f"the demo found something that must not happen: {otherwise}",
                f"please report it, with {self.place.log}",
            )

    def make_keys(self) -> None:
        """Make the owner's keystore, and a stranger's with another key of the same name."""
        store = self.place.make_keystore("owner")
        self.place.make_keystore("stranger")
        self.show(f"{store.path}, keys {[key.key_id for key in store.list_keys()]}")

    def create(self, spark: SparkSession) -> None:
        with typed_errors():
            spark.sql(f"CREATE NAMESPACE {CATALOG}.demo")
            mode = self.place.write_mode
            spark.sql(
                f"CREATE TABLE {ENCRYPTED} ({flights.SCHEMA}) USING iceberg PARTITIONED BY (origin) TBLPROPERTIES "
                f"('encryption.key-id'='{KEY}', 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}')"
            )

    def load(self, spark: SparkSession, csv: Path) -> int:
        with typed_errors():
            flights.read(spark, csv).writeTo(ENCRYPTED).append()
            rows = spark.table(ENCRYPTED).count()
        self.show(f"{rows:,} rows")
        self.require(rows == flights.ROWS, f"{flights.ROWS:,} rows were loaded, {rows:,} are there")
        return rows

    def change(self, spark: SparkSession) -> None:
        with typed_errors():
            early = spark.table(ENCRYPTED).where("dep_delay < -15").count()
            spark.sql(f"UPDATE {ENCRYPTED} SET dep_delay = -15 WHERE dep_delay < -15")  # noqa: S608
            cancelled = spark.table(ENCRYPTED).where("dep_time IS NULL").count()
            spark.sql(f"DELETE FROM {ENCRYPTED} WHERE dep_time IS NULL")  # noqa: S608
        self.show(f"{early:,} early departures updated, {cancelled:,} cancelled flights deleted")

    def verify(self, spark: SparkSession) -> VerifyReport:
        report = verify_table(spark, ENCRYPTED)
        self.show(report)
        self.require(report.ok, "a file of the encrypted table is not encrypted")
        return report

    def show_bytes(self, spark: SparkSession, report: VerifyReport) -> str:
        """Show the first bytes of a data file and a manifest beside a plaintext table's."""
        spark.sql(f"CREATE TABLE {PLAIN} USING iceberg AS SELECT * FROM {ENCRYPTED}")  # noqa: S608
        with verify_table(spark, PLAIN) as plain:
            self.require(not plain.ok, "a table without a key passed as encrypted")
            for kind in ("data", "manifest"):
                self.show(self.dump(f"encrypted {kind}", _first(report, kind), "green"))
                self.show(self.dump(f"plaintext {kind}", _first(plain, kind), "red"))
        return _first(report, "data")

    def dump(self, label: str, path: str, style: str) -> Text:
        """Dump a file's first bytes: hexadecimal, and what of them is text."""
        with Path(unquote(urlsplit(path).path)).open("rb") as file:
            head = file.read(SHOWN_BYTES)
        lines = Text(label, f"bold {style}")
        count = 16 if self.console.width >= 80 else 8
        for start in range(0, len(head), count):
            row = head[start : start + count]
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            lines.append(f"\n  {row.hex(' '):<{3 * count}} ").append(shown, style)
        return lines

    def read_again(self, known: list[list[Any]]) -> None:
        (told,) = self.ask("owner")
        self.require(told.get("answer") == known, f"the second process answered {told}")
        rows = sum(row[1] for row in known)
        self.show(f"{rows:,} rows, and the same answer for each of {len(known)} carriers")

    def refused(self, data_file: str) -> int:
        """Have a process with a stranger's key try the table, and then a data file itself."""
        attempts = self.ask("stranger", data_file)
        for told in attempts:
            self.require("error" in told, f"it was read without the key: {told}")
            said = hinted(Text(advice(told["message"])), told["hint"])
            self.show(Text.assemble((told["what"], "bold"), ": ", (told["error"], "red")))
            self.show(Indented(said))
        return len(attempts)

    def ask(self, keystore: str, *arguments: str) -> list[dict[str, Any]]:
        module = "pyspark_iceberg_crypto.demo.other_process"
        command = [sys.executable, "-m", module, str(self.place.folder), keystore, *arguments]
        with self.place.log.open("ab") as log:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, timeout=300)  # noqa: S603
        self.require(done.returncode == 0, f"the other process ended with {done.returncode}")
        told: list[dict[str, Any]] = json.loads(done.stdout)
        return told

    def summary(self, loaded: int, left: int, report: VerifyReport, refusals: int) -> None:
        table = Table.grid(padding=(0, 2))
        for name, value in {
            "Loaded": f"{loaded:,} flights; {left:,} left after updates and deletes",
            "Verified": f"{_words.file_count(report)} files, all encrypted; metadata.json is not (by design)",
            "With the key": "a second process read every row, with the same answers",
            "Without it": f"{refusals} ways tried, none gave a row",
            "Took": f"{time.monotonic() - self.began:.0f} s",
        }.items():
            table.add_row(Text(name, "bold"), Text(value))
        self.console.print(
            Panel(table, title="iceberg-crypto demo", border_style="green", expand=False)
        )


def _first(report: VerifyReport, kind: str) -> str:
    row = report.files.where(f"kind = '{kind}'").orderBy("path").first()
    if row is None:
        raise IcebergCryptoError(f"{report.table} has no file of kind {kind!r}")
    return str(row["path"])
