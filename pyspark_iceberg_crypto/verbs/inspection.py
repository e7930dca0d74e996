"""Inspects a single file: what it is, how it is encrypted and, with its key, whether it is what was written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._layout import Facts
from pyspark_iceberg_crypto.reports._text import visible

if TYPE_CHECKING:  # a file is inspected without Spark, too
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ProtectedColumn:
    """A column of a Parquet or ORC file with keys.

    Attributes:
        name: its whole name in the file.
        protected_by: "column key", "footer key" or "nothing".
        key_id: the master key; None if the file has none, or does not name it.
        mask: ORC: what readers without the key see, which is in the file in plaintext.
    """

    name: str
    protected_by: str
    key_id: str | None = None
    mask: str | None = None


@dataclass(frozen=True)
class FileInspection(_terminal.Shown):
    """What a file is, by its bytes and, with its key, whether it is what was written. It prints as text.

    Attributes:
        path: the file.
        length: its length in bytes.
        magic: what its first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ORC, JSON, EMPTY,
            LATER (encrypted, in a later version), OTHER.
        format: that, in words.
        encrypted: whether that is an encrypted format.
        block_size: AGS1: plaintext bytes in a block.
        block_count: AGS1: number of blocks.
        plaintext_length: AGS1: length of what is encrypted, in bytes, calculated from the file's length.
        algorithm: PARE: AES_GCM_V1 or AES_GCM_CTR_V1.
        footer_length: PARE: length of the footer, in bytes.
        aad_prefix_supplied: PARE: whether a reader must supply the AAD prefix.
        aad_prefix_stored: PARE: whether the file has the AAD prefix in it. Iceberg keeps it elsewhere.
        aad_file_unique_length: PARE: length in bytes of the file's random identifier.
        tags_checked: True: every authentication tag matches the file's key. None: no key was given.
        length_checked: whether the file's length is the one that its table, or its key metadata, says; only
            then would a stream that was cut off between two blocks be detected. None: no key was given.
        decrypted_to: where the decrypted content was written; None: nowhere.
        pages_authenticated: Parquet with keys of Parquet's key tools, or ORC with keys, as all that follows: False
            under AES_GCM_CTR_V1 and in ORC, where nobody would notice changed data.
        footer: "encrypted" or "plaintext".
        footer_key: the master key of the footer.
        columns: what protects each column; None: the footer is encrypted, and its key is not available.
        unknown: why the columns are not known.
        pages_checked: whether the pages of all columns were read, and are what was written, as far as the algorithm
            shows it; None: not asked.
        columns_left: columns that were not read, with the reason.
    """

    path: str
    length: int
    magic: str
    format: str
    encrypted: bool
    block_size: int | None = None
    block_count: int | None = None
    plaintext_length: int | None = None
    algorithm: str | None = None
    footer_length: int | None = None
    aad_prefix_supplied: bool | None = None
    aad_prefix_stored: bool | None = None
    aad_file_unique_length: int | None = None
    tags_checked: bool | None = None
    length_checked: bool | None = None
    decrypted_to: str | None = None
    pages_authenticated: bool | None = None
    footer: str | None = None
    footer_key: str | None = None
    columns: list[ProtectedColumn] | None = None
    unknown: str | None = None
    pages_checked: bool | None = None
    columns_left: dict[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the file, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class FileKey:
    """A file's own key, to inspect a file whose table no longer exists. The JVM reads the key itself.

    Attributes:
        file: a private file that holds the DEK, in hex.
        env: the environment variable that holds it, in place of a file.
        aad_prefix: the AAD prefix of the file, in hex.
    """

    file: str | None = None
    env: str | None = None
    aad_prefix: str = ""


def inspect_file(
    spark: SparkSession,
    path: str,
    *,
    table: str | None = None,
    key: FileKey | None = None,
    decrypt_to: str | None = None,
    pages: bool = False,
) -> FileInspection:
    """Identify a file by its bytes, and say how it is encrypted; with its key also check all of its tags.

    Of Parquet files with keys of their own for columns (`ParquetKeys`) it shows the columns, if the footer is
    plaintext, or the session has the KMS. Of ORC files with keys (`OrcKeys`) it always shows them.

    Args:
        spark: a session; it brings the storage's file systems.
        path: a local path, or any URI that Spark can read.
        table: a table that reaches the file, such as "lake.db.t": the file's key is found in its metadata.
        key: the file's key, in place of a table.
        decrypt_to: a new local file, readable by its owner only, for the decrypted content of an AES GCM
            stream. Anyone who reads it needs no key: it is for forensics.
        pages: read all data of a Parquet or ORC file with keys, with the session's KMS.

    Raises:
        NoSessionError: there is no session, or it was stopped.
        ConfigurationError: there is no such file, it cannot be read, or an argument does not fit.
        TamperedError: it says it is encrypted, but its structure is broken or a tag does not match.
        PlaintextFoundError: it, or a part of it, is plaintext, and a table or key was given.
        NotSupportedError: decrypt_to, and the file is Parquet: read it through its table.
        IcebergCryptoError: it could not be checked.
    """
    from pyspark_iceberg_crypto.jvm import _jvm

    if table is not None and key is not None:
        raise ConfigurationError("both a table and a key are given", "give one of them")
    if pages and (table is not None or key is not None):
        raise ConfigurationError("pages is for files without a table", "leave it out")
    if table is None and key is None:
        if decrypt_to is not None:
            raise ConfigurationError("decrypt_to needs a table or a key", "give one of them")
        return inspection_of(_jvm.run(spark, "inspect_file", path=str(path), pages=bool(pages)))
    target = new_target(decrypt_to)
    if key is None:
        return inspection_of(
            json.loads(_jvm.call(spark, "checkFileOfTable", str(path), table, target))
        )
    asked = (key.file, key.env, key.aad_prefix, target)
    return inspection_of(json.loads(_jvm.call(spark, "checkFile", str(path), *asked)))


def inspect_local(path: str) -> FileInspection:
    """Inspect a local file without a key, and without Spark and its JVM: for the command line."""
    return inspection_of(_files.inspect(path))


def inspection_of(found: dict[str, Any]) -> FileInspection:
    """Make one of its JSON."""
    known = FileInspection.__dataclass_fields__
    columns = found.get("columns")
    if columns is not None:
        found = {**found, "columns": [ProtectedColumn(**column) for column in columns]}
    return FileInspection(**{name: value for name, value in found.items() if name in known})


def new_target(decrypt_to: str | None) -> str | None:
    """Check that a file is not there yet, before anything is read. Whoever writes it checks it once more."""
    if decrypt_to is None:
        return None
    target = Path(decrypt_to).absolute()
    if target.exists() or target.is_symlink():
        raise ConfigurationError(f"{target} exists, and is not overwritten", "name another file")
    return str(target)


@_terminal.layout.register
def _(found: FileInspection) -> RenderableType:
    facts: list[tuple[Text, Text]] = []
    for name, value in found.to_dict().items():
        if name in ("path", "columns", "columns_left"):  # on lines of their own: they would not fit
            continue
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        facts.append((Text(name.replace("_", " "), "dim"), Text(visible(shown))))
    for column in found.columns or ():
        said = (
            column.protected_by
            if column.key_id is None
            else f"{column.protected_by} {column.key_id}"
        )
        if column.mask is not None:
            said += f", mask {column.mask}"
        style = _STYLES.get(column.protected_by, "")
        facts.append((Text(visible(column.name)), Text(visible(said), style)))
    for name, reason in (found.columns_left or {}).items():
        facts.append((Text(f"{visible(name)} not read", "yellow"), Text(visible(reason))))
    return Group(Text(visible(found.path), "bold"), Facts(facts), _verdict(found))


_STYLES = {"nothing": "bold red"}


def _verdict(found: FileInspection) -> Text:
    if found.footer is not None:
        return _verdict_of_columns(found)
    if not found.encrypted:
        return Text("- not encrypted", "bold yellow")
    if not found.tags_checked:
        return Text("✓ encrypted, and its structure is intact; no tag was checked", "bold green")
    said = "✓ encrypted, and every tag matches its key"
    if not found.length_checked:
        said += "; it cannot be known whether blocks at its end are missing"
    return Text(said, "bold green")


def _verdict_of_columns(found: FileInspection) -> Text:
    if found.unknown is not None:
        return Text("? the footer is encrypted; its columns are not known", "bold yellow")
    if not found.encrypted:
        return Text("- a part is not encrypted: the footer, or a column", "bold yellow")
    if not found.pages_authenticated:
        return Text("- encrypted but not authenticated: AES-CTR", "bold yellow")
    said = "✓ footer and columns are encrypted"
    if found.pages_checked:
        said += ", and every page is what was written"
    return Text(said, "bold green")
