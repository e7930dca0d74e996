"""The golden tables of tests/vectors, unpacked, as a verification takes them: without a catalog."""

import functools
import json
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.files import secret_file
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader import _checks, _document, open_table
from pyspark_iceberg_crypto.reader._checks import Loaded, Trust
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader._settings import Settings
from pyspark_iceberg_crypto.reader.proof._report import CheckedFile, ProofReport
from pyspark_iceberg_crypto.reader.proof._subject import Subject
from pyspark_iceberg_crypto.reader.proof._verify import Options, verify

VECTORS = Path(__file__).parents[1] / "vectors"
BUILD = "1cfc043"
KINDS = ("hadoop", "jdbc")


@functools.cache
def shared_client() -> CachedKms:
    """The KMS of all golden tables, opened once: a keystore takes a second to open, on purpose."""
    folder = Path(tempfile.mkdtemp(prefix="golden-keys-"))
    return from_properties(keystore(folder))


def keystore(folder: Path) -> dict[str, str]:
    """Copy the golden tables' keystore, their owner's alone; return the properties of a catalog with it."""
    for name in ("keys.p12", "keys.password"):
        secret_file(folder / name, (VECTORS / name).read_bytes())
    return {
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(folder / "keys.p12"),
        "encryption.kms.keystore.password-file": str(folder / "keys.password"),
    }


@dataclass(frozen=True)
class Stored:
    """A file below a folder, by the location that the table has for it."""

    path: Path
    location: str

    def __len__(self) -> int:
        return self.path.stat().st_size

    def exists(self) -> bool:
        return self.path.exists()

    def open(self, seekable: bool = True) -> Any:
        return self.path.open("rb")


class ViewFs(PyArrowFileIO):
    """For a catalog of PyIceberg: `viewfs://golden-BUILD/` is the folder of the property `golden.folder`."""

    def new_input(self, location: str) -> InputFile:
        inside = location.partition("//golden-")[2].partition("/")[2]
        return super().new_input(
            f"{self.properties['golden.folder']}/{inside}" if inside else location
        )


@dataclass
class Golden:
    """A table of a copy of what an earlier build wrote."""

    folder: Path
    kind: str
    properties: dict[str, str] = field(default_factory=dict)

    @classmethod
    def unpacked(cls, kind: str, folder: Path) -> "Golden":
        shutil.unpack_archive(VECTORS / f"tables-{BUILD}.zip", folder)
        return cls(folder, kind)

    def __post_init__(self) -> None:
        self.properties = {**keystore(self.folder), **self.properties}
        self.client = shared_client()

    def new_input(self, location: str) -> Stored:
        return Stored(self.local(location), location)

    def local(self, location: str) -> Path:
        return self.folder / location.partition(f"//golden-{BUILD}/")[2]

    @property
    def location(self) -> str:
        """The metadata file in force."""
        if self.kind == "hadoop":
            files = (self.folder / "tables/hadoop/db/t/metadata").glob("v*.gz.metadata.json")
            newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
            return f"viewfs://golden-{BUILD}/{newest.relative_to(self.folder)}"
        with sqlite3.connect(self.folder / "jdbc.db") as database:
            of = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 't'"
            return str(database.execute(of).fetchone()[0])

    @property
    def name(self) -> str:
        """Of the catalog, as a JDBC catalog keeps it in every row."""
        return f"golden_{BUILD}_{self.kind}"

    @property
    def conf(self) -> dict[str, str]:
        """The properties of a catalog of Spark on these tables, and what has PyIceberg read its files."""
        return {
            **self.properties,
            "py-io-impl": "reader.golden.ViewFs",
            "golden.folder": str(self.folder),
            "type": self.kind,
            "warehouse": f"viewfs://golden-{BUILD}/tables/{self.kind}",
            "uri": f"jdbc:sqlite:{self.folder}/jdbc.db",
        }

    @property
    def answers(self) -> dict[str, Any]:
        """The rows of each of the table's states."""
        every: dict[str, Any] = json.loads((self.folder / "answers.json").read_text())
        return every[self.kind]

    def opened(self) -> Table:
        """The table, as its catalog finds it."""
        given: dict[str, Any] = {"kms": self.client, "properties": self.conf}
        if self.kind == "hadoop":
            return open_table(self.conf["warehouse"], "db.t", **given)
        conf = {**self.conf, "uri": f"sqlite:///{self.folder}/jdbc.db"}
        return open_table(SqlCatalog(self.name, **conf), "db.t", **given)

    def subject(self) -> Subject:
        location = self.location
        stored = self.local(location).read_bytes()
        document = json.loads(_document.text(location, stored))
        loaded = Loaded("lake.db.t", location, document, stored)
        client = self.client.for_table(document["table-uuid"])
        keys = TableKeys("lake.db.t", document, client)
        settings = Settings.of(self.properties)
        _checks.check(loaded, keys, client, Trust.POINTER, settings)
        kms = str(self.client)
        return Subject(loaded, keys, kms, self, Trust.POINTER, settings, client, self.subject)

    def verify(self, depth: str = "deep", all_snapshots: bool = False) -> ProofReport:
        return verify(self.subject(), Options(depth, all_snapshots))

    def one(self, kind: str, report: ProofReport | None = None) -> CheckedFile:
        """A file of a kind that the current snapshot reaches."""
        files = (report or self.verify("magic")).files
        return next(file for file in files if file.kind == kind)
