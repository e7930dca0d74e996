"""Wrong settings: refused before a file is written; the error names table and property, and says what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.files import secret_file, untouched
from harness.lake import Lake, tblproperties

KEYSTORE = "encryption.kms.keystore"


@dataclass(frozen=True)
class BadTable:
    """Table properties that CREATE refuses, and the words its error must hold beside the table's name."""

    properties: dict[str, str]
    words: tuple[str, ...]


def by_day(cases: Iterable[str], *chosen: str) -> list[Any]:
    """The others by night; JUnit has each, too."""
    assert set(chosen) <= set(cases)
    return [pytest.param(one, marks=[pytest.mark.nightly] * (one not in chosen)) for one in cases]


BAD_TABLES = {
    "unknown key id": BadTable(
        {"encryption.key-id": "no-such-key"}, ("encryption.key-id", "no-such-key")
    ),
    "empty key id": BadTable({"encryption.key-id": ""}, ("encryption.key-id",)),
    "blank key id": BadTable({"encryption.key-id": "  "}, ("encryption.key-id",)),
    "data key of 17 bytes": BadTable(
        {"encryption.data-key-length": "17"}, ("encryption.data-key-length", "17")
    ),
    "data key of no number": BadTable(
        {"encryption.data-key-length": "x"}, ("encryption.data-key-length",)
    ),
    "misspelt key id": BadTable(
        {"encryption.keyid": "k1"}, ("encryption.keyid", "Did you mean encryption.key-id?")
    ),
    "format version 2": BadTable({"format-version": "2"}, ("format-version", "3")),
    "format version 1": BadTable({"format-version": "1"}, ("format-version", "3")),
    "ORC": BadTable({"write.format.default": "orc"}, ("write.format.default", "orc")),
    "ORC deletes": BadTable(
        {"write.delete.format.default": "orc"}, ("write.delete.format.default", "orc")
    ),
    "pages with plaintext": BadTable(
        {"write.parquet.page-version": "v2"}, ("write.parquet.page-version=v2", "plaintext")
    ),
}


@pytest.mark.catalogs("rest")
@pytest.mark.parametrize("case", by_day(BAD_TABLES, "misspelt key id", "ORC", "format version 2"))
def test_bad_table(lake: Lake, case: str) -> None:
    bad = BAD_TABLES[case]
    name, table = f"{lake.namespace}.t", lake.table()
    clause = tblproperties({"encryption.key-id": "k1", **bad.properties})
    lake.refused(f"CREATE TABLE {table} (id BIGINT) USING iceberg {clause}", name, *bad.words)
    lake.refused(f"CREATE TABLE {table} USING iceberg {clause} AS SELECT 1 AS id", name, *bad.words)
    lake.refused(
        f"CREATE OR REPLACE TABLE {table} USING iceberg {clause} AS SELECT 1 AS id",
        name,
        *bad.words,
    )
    assert not lake.tables()


def test_bad_properties_later(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    for properties in (
        {"write.format.default": "orc"},
        {"write.delete.parquet.page-version": "v2"},
        {"encryption.data-key-length": "17"},
        {"encryption.key-id": ""},
        {"encryption.data-key-lenght": "32"},
    ):
        (name,) = properties
        lake.refused(
            f"ALTER TABLE {table} SET {tblproperties(properties)}", f"{lake.namespace}.t", name
        )
    lake.insert(table, [2])
    assert lake.ids(table) == [1, 2]


def test_orc_as_a_write_option(lake: Lake) -> None:
    """One write can ask for ORC past the table's properties: nothing plaintext may come of it."""
    table = lake.create()
    frame = lake.spark.range(1).selectExpr("id", "'n' AS note", "'p' AS part")
    with (
        untouched(lake.folder),
        pytest.raises(Exception, match="Native ORC encryption is not supported"),
    ):
        frame.writeTo(table).option("write-format", "orc").append()


# What else can be wrong with a KMS is in CachingKmsClientTest, KeystoreKmsClientTest and tests/kms.
@pytest.mark.catalogs("hive")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({f"{KEYSTORE}.password-file": "{file}"}, (f"{KEYSTORE}.password-file",)),
        (
            {"encryption.requird": "true"},
            ("encryption.requird", "Did you mean encryption.required?"),
        ),
    ],
    ids=["wrong password", "misspelt property"],
)
def test_bad_catalog(
    lake: Lake, options: dict[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    """Refused at the catalog's first use."""
    file = secret_file(tmp_path / "wrong-password", "not-the-password")
    options = {name: value.format(file=file) for name, value in options.items()}
    broken = lake.with_options(options)
    clause = tblproperties({"encryption.key-id": "k1"})
    statement = f"CREATE TABLE {broken.table()} USING iceberg {clause} AS SELECT 1 AS id"
    text = broken.refused(statement, *words)
    assert broken.catalog in text or f"{broken.namespace}.t" in text, text[:2000]
    assert "only-for-tests" not in text  # the keystore's password
