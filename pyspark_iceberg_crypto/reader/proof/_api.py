"""What a user calls for proof without Spark. PyIceberg is imported by the first call, which says if it is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.evidence._evidence import Evidence, VerifyTablesReport
from pyspark_iceberg_crypto.kms import _secrets
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reader._open import _require_pyiceberg
from pyspark_iceberg_crypto.verbs import kept_reports
from pyspark_iceberg_crypto.verbs.inspection import (
    FileInspection,
    FileKey,
    inspect_local,
    inspection_of,
    new_target,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from pyspark_iceberg_crypto.evidence._evidence import TableEvidence
    from pyspark_iceberg_crypto.kms import KeyManagementClient
    from pyspark_iceberg_crypto.reader._allowed import AllowedKeyIds
    from pyspark_iceberg_crypto.reader.proof._opened import Source
    from pyspark_iceberg_crypto.reader.proof._report import ProofReport
    from pyspark_iceberg_crypto.reader.proof._verify import Progress

Signed = TypeVar("Signed", bound=Evidence)
Identifier = str | tuple[str, ...]


def verify_table(
    catalog: Catalog | str | Path,
    identifier: Identifier | None = None,
    *,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    structure: bool = False,
    deep: bool = False,
    all_snapshots: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ProofReport:
    """Check that every file of a table's current snapshot, branches and tags is encrypted, or of all its snapshots.

    The report is that of `verify_table` with Spark, file by file; nothing is sampled, and strays are not looked for.

    Args:
        catalog: a catalog of PyIceberg, or a path; as of `open_table`, and so are the next three.
        identifier: the table's name.
        kms: what unwraps the table's keys.
        properties: of the catalog.
        name: what to call the table in the report; None: as its catalog does.
        structure: check each file's header, block layout, footer and length, not its first and last bytes only.
        deep: check each byte, by its authentication tag; that includes structure.
        all_snapshots: check what any metadata file of the table's log reaches.
        threads: how many files are checked side by side; None: as many as there are cores, and 8 at least.
        progress: is called with the step, and how many files and bytes were checked so far.

    Raises:
        TableNotFoundError: there is no such table.
        TamperedError: the table's metadata is not what was committed.
        IcebergCryptoError: the check as a whole could not be done; see the error's type. What could not be checked of
            single files is in the report, which then is not ok.
    """
    _require_pyiceberg()
    from pyspark_iceberg_crypto.reader.proof import _check, _opened, _verify

    depth = _check.DEEP if deep else _check.STRUCTURE if structure else _check.MAGIC
    source = _source(catalog, identifier, kms, properties, name)
    options = _verify.Options(depth, all_snapshots, threads, progress)
    return _verify.verify(_opened.opened(source, all_snapshots), options)


def inspect_file(
    path: str | Path,
    catalog: Catalog | str | Path | None = None,
    identifier: Identifier | None = None,
    *,
    key: FileKey | None = None,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    decrypt_to: str | Path | None = None,
) -> FileInspection:
    """Identify a file by its bytes, and say how it is encrypted; with its key also check all of its tags.

    Args:
        path: a local path, or any location that PyIceberg reads.
        catalog: where a table is that reaches the file; the file's key is found in its metadata. As of `open_table`,
            and so are the next one, kms and properties.
        identifier: the table's name.
        key: the file's key, in place of a table.
        kms: what unwraps the table's keys.
        properties: of the catalog or, for a file without one, of the storage, such as `s3.endpoint`.
        decrypt_to: a new local file, readable by its owner only, for the decrypted content of an AES GCM stream.
            Anyone who reads it needs no key: it is for forensics.

    Raises:
        ConfigurationError: there is no such file, no snapshot of the table reaches it, or an argument does not fit.
        TamperedError: it says it is encrypted, but its structure is broken or a tag does not match.
        PlaintextFoundError: it, or a part of it, is plaintext, and a table or key was given.
        NotSupportedError: decrypt_to, and the file is Parquet: read it through its table.
        IcebergCryptoError: it could not be read or checked.
    """
    if catalog is not None and key is not None:
        raise ConfigurationError("both a table and a key are given", "give one of them")
    if catalog is None and key is None:
        if decrypt_to is not None:
            raise ConfigurationError("decrypt_to needs a table or a key", "give one of them")
        if _files.local_path(str(path)) is not None:
            return inspect_local(str(path))
    target = new_target(None if decrypt_to is None else str(decrypt_to))
    _require_pyiceberg()
    from pyiceberg.io import load_file_io

    from pyspark_iceberg_crypto.reader.proof import _one, _opened, _search

    if catalog is not None:
        subject = _opened.opened(_source(catalog, identifier, kms, properties))
        known = _search.find(subject, str(path))
        stored = subject.storage.new_input(known.path)
        return inspection_of(_one.checked(stored, known, True, target))
    stored = load_file_io(dict(properties or {}), str(path)).new_input(str(path))
    if key is None:
        return inspection_of(_one.inspected(stored))
    text, _ = _secrets.read_secret(key.env, key.file, "the file's", "key")
    known = _one.with_key(stored, text, key.aad_prefix)
    return inspection_of(_one.checked(stored, known, False, target))


def decrypt_file(
    path: str | Path,
    target: str | Path,
    catalog: Catalog | str | Path | None = None,
    identifier: Identifier | None = None,
    *,
    key: FileKey | None = None,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
) -> FileInspection:
    """Decrypt one file, an AES GCM stream, into a new local file: for forensics.

    It is written after every tag of the file was found right. Arguments and errors are those of `inspect_file`.

    Args:
        path: the file.
        target: the new file, readable by its owner only.
        catalog: where a table is that reaches the file.
        identifier: the table's name.
        key: the file's key, in place of a table.
        kms: what unwraps the table's keys.
        properties: of the catalog.
    """
    return inspect_file(
        path, catalog, identifier, key=key, kms=kms, properties=properties, decrypt_to=target
    )


def sign_report(
    report: Signed,
    key_id: str,
    *,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
) -> Signed:
    """Return a report with a signature, which `check_report` checks, here or with Spark.

    Args:
        report: the report; see `VerifyReport.sign`.
        key_id: the master key. Only its users may be able to wrap with it: not an RSA key.
        kms: what wraps the signature's key; left out: the properties say.
        properties: of the catalog.

    Raises:
        AccessDeniedError: `encryption.allowed-key-ids` does not have the master key.
        ConfigurationError: others can wrap with the master key, so that a signature would prove nothing.
        IcebergCryptoError: the KMS's typed error.
    """
    from pyspark_iceberg_crypto.reader.proof import _signature

    source = _source("", None, kms, properties)
    text = json.dumps({**report.to_dict(), "signature": None})
    allowed = _allowed(source)
    signature = _signature.sign(text, key_id, allowed, source.require_client())
    return replace(report, signature=signature)  # type: ignore[type-var]


def check_report(
    file: str | Path,
    key_id: str | None = None,
    *,
    kms: KeyManagementClient | None = None,
    properties: Mapping[str, str] | None = None,
    catalog: str = "lake",
) -> TableEvidence | VerifyTablesReport:
    """Check that a report is as it was signed, with Spark or without, and read it.

    A genuine report may still show problems: see its ``ok``.

    Args:
        file: the report's JSON file.
        key_id: the master key that must have signed it; None: any key that the catalog allows.
        kms: what unwraps the signature's key; left out: the properties say.
        properties: of the catalog.
        catalog: the catalog's name, for the report's page.

    Raises:
        TamperedError: the report is not genuine.
        ConfigurationError: there is no such file, it is not a report, it is not signed, or it contradicts itself.
        IcebergCryptoError: the KMS's typed error: it could not be checked.
    """
    from pyspark_iceberg_crypto.reader.proof import _report, _signature

    source = _source("", None, kms, properties)

    def check(text: str) -> None:
        _signature.check(text, key_id, _allowed(source), source.require_client())

    return kept_reports.check_report_by(check, catalog, file, key_id, _report.ProofReport)


def _allowed(source: Source) -> AllowedKeyIds:
    from pyspark_iceberg_crypto.reader._settings import Settings

    return Settings.of(source.all_properties()).allowed_key_ids


def _source(
    catalog: Catalog | str | Path,
    identifier: Identifier | None,
    kms: Any,
    properties: Mapping[str, str] | None,
    name: str | None = None,
) -> Source:
    from pyspark_iceberg_crypto.reader.proof._opened import Source

    return Source(catalog, identifier, kms, dict(properties or {}), name)
