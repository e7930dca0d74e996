"""The footer of an encrypted Parquet file: where the file's other parts are (Parquet encryption, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark_iceberg_crypto.local import _thrift
from pyspark_iceberg_crypto.local._files import GCM
from pyspark_iceberg_crypto.local._thrift import BINARY, I16, I32, I64, LIST, STRUCT, Wanted
from pyspark_iceberg_crypto.reader import _crypto_metadata
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof._modules import Decryptor, ModuleType, Place
from pyspark_iceberg_crypto.reader.proof._problems import (
    PLAINTEXT,
    UNAUTHENTICATED,
    FoundError,
    tampered,
    unknown,
)

# The structs of parquet.thrift, as far as they are needed here.
_COLUMN = {
    3: Wanted("path", LIST, BINARY, True),
    7: Wanted("size", I64, None, True),
    9: Wanted("data", I64, None, True),
    11: Wanted("dictionary", I64),
    14: Wanted("bloom_filter", I64),
    15: Wanted("bloom_filter_length", I32),
}
_OWN_KEY = {1: Wanted("path", LIST, BINARY, True), 2: Wanted("key_metadata", BINARY)}
_CHUNK = {
    1: Wanted("file", BINARY),
    3: Wanted("metadata", STRUCT, _COLUMN),
    4: Wanted("offset_index", I64),
    5: Wanted("offset_index_length", I32),
    6: Wanted("column_index", I64),
    7: Wanted("column_index_length", I32),
    8: Wanted(
        "crypto", STRUCT, {1: Wanted("footer_key", STRUCT, {}), 2: Wanted("own", STRUCT, _OWN_KEY)}
    ),
}
_ROW_GROUP = {1: Wanted("columns", LIST, _CHUNK, True), 7: Wanted("ordinal", I16)}
_FILE = {4: Wanted("row_groups", LIST, _ROW_GROUP, True)}

COLUMN_CHUNK, COLUMN_INDEX = "column chunk", "column index"
OFFSET_INDEX, BLOOM_FILTER = "offset index", "bloom filter"


@dataclass(frozen=True)
class Part:
    """A part of the file, of one column in one row group.

    Attributes:
        kind: what it is.
        start: its first byte.
        length: its bytes; -1 when the footer does not say, as of bloom filters that older writers made.
        place: which column.
        dictionary: whether it is a column chunk that starts with a dictionary page.
    """

    kind: str
    start: int
    length: int
    place: Place
    dictionary: bool = False

    def __str__(self) -> str:
        return f"{self.kind} of {self.place}"


@dataclass(frozen=True)
class Footer:
    """A decrypted footer.

    Attributes:
        file_aad: the AAD prefix and the file's identifier, with which the AAD of all modules starts.
        parts: all parts of the file but the footer, by their positions.
        modules: decrypts them.
    """

    file_aad: bytes
    parts: list[Part]
    modules: Decryptor


def read(data: memoryview, key: KeyMetadata) -> Footer:
    """Decrypt a footer.

    Args:
        data: the whole footer, without its length and the magic.
        key: the file's.

    Raises:
        FoundError: it is not what was written, or a column is not encrypted.
    """
    try:
        crypto, length = _crypto_metadata.read(bytes(data))
    except _thrift.MalformedError as error:
        raise unknown(str(error)) from error
    file_aad = _file_aad(crypto, key)
    modules = Decryptor(key.key)
    aad = file_aad + bytes([ModuleType.FOOTER])
    metadata = parsed("the footer", modules.opened("the footer", data[length:], aad), _FILE)
    parts: list[Part] = []
    for number, group in enumerate(metadata["row_groups"]):
        ordinal = group.get("ordinal", number)
        for i, chunk in enumerate(group["columns"]):
            parts += _parts(chunk, ordinal, i)
    parts.sort(key=lambda part: part.start)
    return Footer(file_aad, parts, modules)


def parsed(name: str, content: bytes, wanted: dict[int, Wanted]) -> dict[str, Any]:
    """Read the struct that a module holds.

    Raises:
        FoundError: this version does not know it.
    """
    try:
        return _thrift.CompactReader(content).struct(wanted)
    except _thrift.MalformedError as error:
        raise unknown(f"{name} does not parse: {error}") from error


def _file_aad(crypto: dict[str, Any], key: KeyMetadata) -> bytes:
    settings = crypto["algorithm"].get(GCM)
    if settings is None:
        raise FoundError(
            UNAUTHENTICATED,
            "its pages are encrypted with AES_GCM_CTR_V1, which does not authenticate them: nothing shows whether they "
            "were changed",
        )
    stored, prefix = settings.get("aad_prefix"), key.aad_prefix
    if stored is not None and stored != prefix:
        raise tampered("its AAD prefix is not that of its key metadata")
    if stored is None and settings.get("supply_aad_prefix", False) != bool(prefix):
        raise tampered(
            "it says that it has no AAD prefix; its key metadata has one"
            if prefix
            else "it says that it has an AAD prefix; its key metadata has none"
        )
    return prefix + bytes(settings.get("aad_file_unique", b""))


def _parts(chunk: dict[str, Any], row_group: int, ordinal: int) -> list[Part]:
    own = chunk.get("crypto", {}).get("own")
    metadata = chunk.get("metadata")
    path = (own or metadata or {"path": []})["path"]
    place = Place(".".join(one.decode("utf-8", "replace") for one in path), row_group, ordinal)
    if "crypto" not in chunk:
        raise FoundError(PLAINTEXT, f"{place} is not encrypted")
    if own is not None:
        raise unknown(f"{place} is encrypted with a key of its own, which the table does not have")
    if metadata is None or "file" in chunk:
        raise unknown(f"the footer does not say where in the file {place} is")
    data, dictionary = metadata["data"], metadata.get("dictionary", 0)
    has_dictionary = 0 < dictionary < data  # 0: what some writers give for none
    start = dictionary if has_dictionary else data
    parts = [Part(COLUMN_CHUNK, start, metadata["size"], place, has_dictionary)]
    for kind, name in ((COLUMN_INDEX, "column_index"), (OFFSET_INDEX, "offset_index")):
        if name in chunk:
            parts.append(Part(kind, chunk[name], chunk.get(f"{name}_length", 0), place))
    if "bloom_filter" in metadata:
        length = metadata.get("bloom_filter_length", -1)
        parts.append(Part(BLOOM_FILTER, metadata["bloom_filter"], length, place))
    return parts
