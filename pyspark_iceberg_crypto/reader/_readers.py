"""Which engines can open a table: by its metadata and its manifests, without its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog

from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._engines import BITS, CATALOGS, ENGINES, Engine, Feature, Limit
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import reading
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof import _named, _problems
from pyspark_iceberg_crypto.reader.proof._named import Document, Named
from pyspark_iceberg_crypto.reader.proof._opened import Source, opened
from pyspark_iceberg_crypto.reader.proof._problems import FoundError
from pyspark_iceberg_crypto.reader.proof._subject import Subject
from pyspark_iceberg_crypto.reader.proof._tree import Listed, Tree
from pyspark_iceberg_crypto.reports._readers import ReadersReport, TableReader
from pyspark_iceberg_crypto.reports._text import listed

_OF_FORMAT = {"PARQUET": Feature.PARQUET, "AVRO": Feature.AVRO, "ORC": Feature.ORC}
_OF_KIND = {
    "deletion vector": Feature.DELETION_VECTORS,
    "position deletes": Feature.POSITION_DELETES,
    "equality deletes": Feature.EQUALITY_DELETES,
}
_OF_STREAMS = ("AVRO", "PUFFIN")

Uses = dict[Feature, int | None]
"""What a table has, and how many files have it; None: it is not of files."""


def readers_of(source: Source) -> ReadersReport:
    """See `table_readers`."""
    subject = opened(source)
    document = subject.document
    is_encrypted = subject.loaded.key_id is not None
    uses = uses_of(subject) if is_encrypted else {}
    kind = _catalog(source.catalog)
    client = _kms_type(source.kms, source.all_properties())
    allowed = {f"{key.lower()}={value}" for key, value in source.all_properties().items()}
    return ReadersReport(
        table=subject.loaded.table,
        encrypted=is_encrypted,
        catalog=kind,
        kms=client,
        format_version=int(document.get("format-version", 0)),
        snapshot_id=_named.current_snapshot_id(document),
        uses={one.value: uses[one] for one in Feature if one in uses},
        readers=[answer(one, uses, kind, client, allowed) for one in ENGINES if is_encrypted],
    )


_PAGE_VERSIONS = ("write.parquet.page-version", "write.delete.parquet.page-version")
_OF_THIS_PROJECT = (
    "encryption.kms.aws.encryption-context.",
    "encryption.kms.gcp.additional-authenticated-data",
    "encryption.kms.azure.store-key-version",
)


def answer(
    engine: Engine, uses: Iterable[Feature], catalog: str, kms: str | None, allowed: Iterable[str]
) -> TableReader:
    """Say whether an engine opens a table.

    Args:
        engine: the engine.
        uses: what the table has.
        catalog: the type of its catalog.
        kms: the type of its KMS; None: it is not known.
        allowed: the properties of its catalog, such as NAME=VALUE.
    """
    limits = list(_limits(engine, set(uses), catalog, kms, set(allowed)))
    found = {one.opens for one in limits}
    told = {one.reason.replace("`", ""): one.opens for one in limits}
    return TableReader(
        engine.name.replace("`", ""),
        engine.version,
        False if False in found else None if None in found else True,
        [reason for reason, opens in told.items() if not opens],
        [reason for reason, opens in told.items() if opens],
        engine.tested,
    )


def _limits(
    engine: Engine, uses: set[Feature], catalog: str, kms: str | None, allowed: set[str]
) -> Iterator[Limit]:
    if Feature.ENCRYPTED in engine.limits:
        yield engine.limits[Feature.ENCRYPTED]
        return
    if catalog not in CATALOGS and not engine.other_catalogs:
        yield Limit(f"whether it has catalogs of type {catalog} is not known", opens=None)
    elif catalog in CATALOGS and catalog not in engine.catalogs:
        yield Limit(f"it reads encrypted tables only of catalogs of type {listed(engine.catalogs)}")
    if engine.kms_limit is not None and kms not in engine.kms:
        unknown = Limit("which KMS the table has is not known", opens=None)
        yield unknown if kms is None and engine.kms else engine.kms_limit
    for feature, limit in engine.limits.items():
        if feature in uses and limit.unless not in allowed:
            yield limit


def uses_of(subject: Subject) -> Uses:
    """Return what the current snapshot of an encrypted table has that an engine may lack.

    Raises:
        IcebergCryptoError: what lists its files cannot be read, or is not what was written.
    """
    document = subject.document
    current = _named.current_snapshot_id(document)
    snapshots = [one for one in document.get("snapshots") or [] if one["snapshot-id"] == current]
    named = _named.NamedFiles()
    named.add(document, False, snapshots)
    counts: Counter[Feature] = Counter()
    for file in named.files.values():
        if file.kind == _problems.MANIFEST_LIST:
            _count_manifests(subject, file, counts)
        elif file.key_id is not None:
            counts[Feature.STATISTICS] += 1
    uses: Uses = dict.fromkeys(_of_metadata(document))
    if not counts.keys() & set(BITS.values()):
        bits = 8 * int(subject.loaded.properties.get("encryption.data-key-length", 16))
        uses |= {BITS[bits]: None} if bits in BITS else {}
    return uses | dict(counts)


def _count_manifests(subject: Subject, file: Named, counts: Counter[Feature]) -> None:
    tree = Tree(subject.loaded.table, subject.storage, subject.keys)
    with _reading(subject, file.path):
        key, manifests = tree.key_of(file), tree.manifests(file)
    _count_key(key, Feature.LISTS_WITHOUT_LENGTH, counts)
    for manifest in manifests:
        with _reading(subject, manifest.path):
            _count_key(_key(subject, manifest), Feature.FILES_WITHOUT_LENGTH, counts)
            files = tree.files(manifest)
        for one in files:
            with _reading(subject, one.path):
                key = _key(subject, one)
            is_stream = one.format in _OF_STREAMS
            _count_key(key, Feature.FILES_WITHOUT_LENGTH if is_stream else None, counts)
            features = [_OF_KIND.get(one.kind), _OF_FORMAT.get(one.format)]
            features.append(BITS[8 * len(key.key)] if key else None)
            counts.update(found for found in features if found is not None)


def _key(subject: Subject, file: Listed) -> KeyMetadata | None:
    expected = ExpectedFile(subject.loaded.table, file.path, file.length)
    return None if file.key is None else KeyMetadata.decode(bytes(file.key), expected)


def _count_key(
    key: KeyMetadata | None, without_length: Feature | None, counts: Counter[Feature]
) -> None:
    if key is None:
        counts[Feature.PLAINTEXT_FILES] += 1
    elif key.length is None and without_length is not None:
        counts[without_length] += 1


def _of_metadata(document: Document) -> Iterator[Feature]:
    if int(document.get("format-version", 0)) >= 3:
        yield Feature.ROW_LINEAGE
    if any(_has(one, "initial-default") for one in document.get("schemas") or []):
        yield Feature.INITIAL_DEFAULTS
    properties = document.get("properties") or {}
    versions = {properties.get(name, "").lower() for name in _PAGE_VERSIONS}
    if versions & {"v2", "parquet_2_0"}:
        yield Feature.PAGES_2


def _has(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return name in value or any(_has(one, name) for one in value.values())
    return isinstance(value, list) and any(_has(one, name) for one in value)


@contextmanager
def _reading(subject: Subject, path: str) -> Iterator[None]:
    """Name the table and the file in whatever keeps it from being read."""
    file = ExpectedFile(subject.loaded.table, path)
    with reading(file):
        try:
            yield
        except FoundError as error:
            raise file.changed(error.problem.words) from error


def _catalog(catalog: Catalog | str | Path) -> str:
    """The type of a catalog, as of Spark's; a path is that of a table of a Hadoop catalog."""
    if not isinstance(catalog, Catalog):
        return "hadoop"
    return _pyiceberg.type_of(catalog) or type(catalog).__name__


def _kms_type(kms: Any, properties: Mapping[str, str]) -> str | None:
    """Return the type of a KMS, with a setting of this project's alone that its keys need; None if it is not known."""
    if kms is not None:
        properties = kms.properties() if hasattr(kms, "kms_type") else {}
    given = {key.lower(): value for key, value in properties.items()}
    kind = getattr(kms, "kms_type", None) or given.get("encryption.kms-type")
    bound = next(
        (name for name in given if name.startswith(_OF_THIS_PROJECT) and given[name] != "false"),
        None,
    )
    return f"{kind.lower()} with {bound}" if kind and bound else kind and kind.lower()
