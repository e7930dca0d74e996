"""Which engines read which encrypted tables, and why not: one table for `iceberg-crypto readers` and docs/python.md.

What is known of engines that are not run here is from their documentation and source, in the versions that are named.
`dev/readers.py` writes the page's part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Feature(Enum):
    """What an encrypted table may have that an engine may lack."""

    ENCRYPTED = "encryption"
    BITS_128 = "keys of 128 bits"
    BITS_192 = "keys of 192 bits"
    BITS_256 = "keys of 256 bits"
    PARQUET = "Parquet"
    AVRO = "Avro"
    ORC = "ORC"
    DELETION_VECTORS = "deletion vectors"
    POSITION_DELETES = "position deletes"
    EQUALITY_DELETES = "equality deletes"
    STATISTICS = "encrypted statistics"
    INITIAL_DEFAULTS = "initial defaults"
    ROW_LINEAGE = "row lineage"
    PAGES_2 = "pages of version 2"
    PLAINTEXT_FILES = "files without a key"
    LISTS_WITHOUT_LENGTH = "manifest lists without a length"
    FILES_WITHOUT_LENGTH = "files without a length"


BITS = {
    128: Feature.BITS_128,
    192: Feature.BITS_192,
    256: Feature.BITS_256,
}
"""The feature of a key length in bits."""


@dataclass(frozen=True)
class Limit:
    """Why an engine does not read what a table has.

    Attributes:
        reason: why, in a clause.
        opens: False: it cannot open the table; True: it can, without this; None: that is not documented.
        unless: the property of this project's catalogs with which it can, such as ``NAME=VALUE``; empty: none.
    """

    reason: str
    opens: bool | None = False
    unless: str = ""


@dataclass(frozen=True)
class Engine:
    """An engine, and what it cannot read.

    Attributes:
        name: what it is called.
        version: the version that was tried, or is documented.
        catalogs: the types of the catalogs of which it reads encrypted tables.
        evidence: the test that runs it, or where it is documented, as Markdown.
        tested: whether that is a test.
        limits: what it lacks; all else it reads.
        kms: the types of KMS for which it has clients; empty: all of this project's.
        kms_limit: what it means if the table's KMS is another one.
        other_catalogs: whether it reads those of catalogs of any other type, too.
    """

    name: str
    version: str
    catalogs: tuple[str, ...]
    evidence: str
    tested: bool = True
    limits: Mapping[Feature, Limit] = field(default_factory=dict)
    kms: tuple[str, ...] = ()
    kms_limit: Limit | None = None
    other_catalogs: bool = False


CATALOGS = ("hive", "rest", "jdbc", "hadoop", "glue", "nessie")
_OF_PYTHON = ("hive", "rest", "jdbc", "hadoop", "glue")
_OF_CLOUDS = ("aws", "azure", "gcp")

_ORC = Limit("Iceberg does not encrypt ORC")
_OURS = {
    Feature.ORC: _ORC,
    Feature.PLAINTEXT_FILES: Limit(
        "files without a key are refused", unless="encryption.plaintext-files=allow"
    ),
    Feature.LISTS_WITHOUT_LENGTH: Limit(
        "manifest lists without a length are refused",
        unless="encryption.files-without-length=accept",
    ),
}
_NO_KEYS = "it does not decrypt: {}"
_NOT_AVRO = "it takes the manifest list for Avro (`No schema found in Avro file headers`)"
_UPGRADES = "`engines/test_upgrades.py::test_each_reads_and_writes_what_the_others_wrote`"
_IGNORED = Limit("statistics are ignored", opens=True)
_NO_LENGTH = Limit("key metadata without a file's length is refused (`File length is null`)")
_PLAINTEXT = Limit("files without a key are read, whoever put them there", opens=True)

ENGINES = (
    Engine("Spark with this jar", "3.5, 4.0, 4.1", CATALOGS, _UPGRADES, limits=_OURS),
    Engine(
        "Flink with this jar",
        "1.20 to 2.1",
        CATALOGS,
        "`engines/test_flink.py::test_the_page`",
        limits=_OURS,
    ),
    Engine(
        "Java with this jar (`IcebergGenerics`)",
        "Iceberg 1.12",
        CATALOGS,
        "`GenericDeletesTest.genericsCannotReadDeleteFiles`",
        limits={
            **_OURS,
            **{
                one: Limit("Iceberg opens delete files by their path, without their keys")
                for one in (
                    Feature.DELETION_VECTORS,
                    Feature.POSITION_DELETES,
                    Feature.EQUALITY_DELETES,
                )
            },
        },
    ),
    Engine(
        "Python's `open_table` (pandas, Polars, DuckDB)",
        "PyIceberg 0.12",
        _OF_PYTHON,
        "`reader/test_readers.py::test_open_table_reads_what_the_table_says`",
        limits={
            **_OURS,
            Feature.STATISTICS: Limit("statistics are not used", opens=True),
            Feature.ROW_LINEAGE: Limit(
                "`_row_id` and `_last_updated_sequence_number` are not read", opens=True
            ),
            Feature.PAGES_2: Limit(
                "Arrow does not read encrypted pages of version 2 that Java wrote", opens=None
            ),
        },
        other_catalogs=True,
    ),
    Engine(
        "Spark with stock Iceberg",
        "Iceberg 1.12",
        ("hive",),
        _UPGRADES,
        limits={
            Feature.ORC: _ORC,
            Feature.STATISTICS: _IGNORED,
            Feature.PLAINTEXT_FILES: _PLAINTEXT,
            Feature.LISTS_WITHOUT_LENGTH: _NO_LENGTH,
            Feature.FILES_WITHOUT_LENGTH: _NO_LENGTH,
        },
        kms=_OF_CLOUDS,
        kms_limit=Limit(
            "for another KMS than those of AWS, Azure and Google Cloud, it needs this project's jar and a class of it "
            "in `encryption.kms-impl`",
            opens=True,
        ),
    ),
    Engine(
        "Trino",
        "main, July 2026",
        ("hive",),
        "documented: [trino#29882](https://github.com/trinodb/trino/pull/29882)",
        tested=False,
        limits={
            Feature.AVRO: Limit("encryption is read of Parquet only"),
            Feature.ORC: _ORC,
            **{
                one: Limit(f"whether it reads {one.value} is not documented", opens=None)
                for one in (
                    Feature.DELETION_VECTORS,
                    Feature.POSITION_DELETES,
                    Feature.EQUALITY_DELETES,
                    Feature.BITS_192,
                    Feature.INITIAL_DEFAULTS,
                )
            },
            Feature.STATISTICS: _IGNORED,
            Feature.PLAINTEXT_FILES: Limit(
                "files without a key are refused, unless "
                "`iceberg.encryption.plaintext-files-allowed-for-encrypted-tables=true`"
            ),
            Feature.LISTS_WITHOUT_LENGTH: _NO_LENGTH,
            Feature.FILES_WITHOUT_LENGTH: _NO_LENGTH,
        },
        kms=_OF_CLOUDS,
        kms_limit=Limit("it has clients for the KMSs of AWS, Azure and Google Cloud only"),
    ),
    Engine(
        "iceberg-rust",
        "main, August 2026",
        ("hive", "rest", "jdbc", "glue"),
        "documented: [iceberg-rust#2034](https://github.com/apache/iceberg-rust/issues/2034)",
        tested=False,
        limits={
            Feature.BITS_192: Limit("its Parquet library has no keys of 192 bits"),
            Feature.AVRO: Limit("it reads data in Parquet only"),
            Feature.ORC: _ORC,
            Feature.DELETION_VECTORS: Limit("it does not read deletion vectors"),
            Feature.STATISTICS: _IGNORED,
            Feature.PLAINTEXT_FILES: _PLAINTEXT,
        },
        kms=("memory",),
        kms_limit=Limit("it has no client of a KMS: yours has to be in Rust", opens=True),
    ),
    Engine(
        "iceberg-rust, as released",
        "0.10",
        (),
        "documented: [release notes](https://iceberg.apache.org/blog/)",
        tested=False,
        limits={
            Feature.ENCRYPTED: Limit(
                _NO_KEYS.format("it has manifest lists and manifests, no data files")
            )
        },
    ),
    Engine(
        "PyIceberg alone",
        "0.12",
        (),
        "`reader/test_readers.py::test_pyiceberg_alone`",
        limits={Feature.ENCRYPTED: Limit(_NO_KEYS.format(_NOT_AVRO))},
    ),
    Engine(
        "Polars alone (`scan_iceberg`)",
        "2.1",
        (),
        "`reader/test_readers.py::test_polars_alone`",
        limits={Feature.ENCRYPTED: Limit(_NO_KEYS.format(_NOT_AVRO))},
    ),
    Engine(
        "DuckDB's extension `iceberg`",
        "August 2026",
        (),
        "documented: [its source](https://github.com/duckdb/duckdb-iceberg) passes over key metadata",
        tested=False,
        limits={Feature.ENCRYPTED: Limit(_NO_KEYS.format("it passes over key metadata"))},
    ),
)
