"""Every module of an encrypted Parquet file, and that it has nothing else (Parquet encryption, sections 4.4 and 5)."""

from __future__ import annotations

from pyspark_iceberg_crypto.local._files import PARE_MAGIC as MAGIC
from pyspark_iceberg_crypto.local._files import PARE_TAIL as TAIL
from pyspark_iceberg_crypto.local._thrift import I32, STRUCT, Wanted
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof import _footer, _modules
from pyspark_iceberg_crypto.reader.proof._footer import Footer, Part
from pyspark_iceberg_crypto.reader.proof._modules import OVERHEAD, ModuleType, Place
from pyspark_iceberg_crypto.reader.proof._problems import PLAINTEXT, FoundError, tampered, unknown
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile

_LONGEST_FOOTER = (100 << 20) - TAIL  # that Parquet reads
_LONGEST_HEADER = 16 << 20  # of which a size is believed before it is authenticated

_DATA_PAGE_V2 = 3
_PAGE_TYPES = {0: "DATA_PAGE", 1: "INDEX_PAGE", 2: "DICTIONARY_PAGE", _DATA_PAGE_V2: "DATA_PAGE_V2"}
_LEVELS = {
    5: Wanted("definition_levels", I32, None, True),
    6: Wanted("repetition_levels", I32, None, True),
}
_PAGE_HEADER = {
    1: Wanted("type", I32, None, True),
    3: Wanted("compressed_page_size", I32, None, True),
    8: Wanted("data_page_header_v2", STRUCT, _LEVELS),
}
_BLOOM_FILTER_HEADER = {1: Wanted("numBytes", I32, None, True)}


def check(file: StoredFile, key: KeyMetadata, footer_length: int) -> None:
    """Read a file from start to end. Nothing is decompressed or decoded, and one module at most is in memory.

    Args:
        file: the file, which starts and ends with PARE.
        key: its key.
        footer_length: the length in bytes of its footer, as its tail gives it.

    Raises:
        FoundError: it is not what was written; names the module. Row groups, columns and pages count from 0.
    """
    if footer_length > _LONGEST_FOOTER:
        raise unknown(
            f"its last bytes give a footer of {footer_length} bytes, more than Parquet reads"
        )
    end = file.length - TAIL - footer_length
    footer = _footer.read(file.read(end, footer_length), key)
    _Walk(file, footer, end).check()


class _Walk:
    """Parts follow each other without gaps, from the magic to the footer."""

    def __init__(self, file: StoredFile, footer: Footer, end: int) -> None:
        self._file, self._footer, self._end = file, footer, end
        self._modules = footer.modules

    def check(self) -> None:
        parts = self._footer.parts
        position = MAGIC
        for i, part in enumerate(parts):
            following = parts[i + 1].start if i + 1 < len(parts) else self._end
            length = following - part.start if part.length < 0 else part.length
            self._check_place(part, position, length)
            if part.kind == _footer.COLUMN_CHUNK:
                self._check_pages(part, position, position + length)
            elif part.kind == _footer.BLOOM_FILTER:
                self._check_bloom_filter(part, position, length)
            else:
                kind = (
                    ModuleType.COLUMN_INDEX
                    if part.kind == _footer.COLUMN_INDEX
                    else ModuleType.OFFSET_INDEX
                )
                self._opened(f"the {part}", position, length, self._aad(kind, part.place))
            position += length
        if position != self._end:
            raise _unaccounted(position, self._end)

    def _check_place(self, part: Part, position: int, length: int) -> None:
        if position < part.start <= self._end:
            raise _unaccounted(position, part.start)
        if part.start != position or length < 0 or length > self._end - position:
            raise unknown(
                f"the {part} is not where it should be: from byte {part.start}, {length} bytes, expected byte "
                f"{position}"
            )

    def _check_bloom_filter(self, part: Part, position: int, length: int) -> None:
        name = f"the header of the {part}"
        header_length = self._header_length(name, position, position + length)
        aad = self._aad(ModuleType.BLOOM_FILTER_HEADER, part.place)
        content = self._opened(name, position, header_length, aad)
        header = _footer.parsed(name, content, _BLOOM_FILTER_HEADER)
        aad = self._aad(ModuleType.BLOOM_FILTER_BITSET, part.place)
        start, rest = position + header_length, length - header_length
        bits = len(self._opened(f"the {part}", start, rest, aad))
        if bits != header["numBytes"]:
            raise unknown(f"the {part} has {bits} bytes, expected {header['numBytes']}")

    def _check_pages(self, chunk: Part, start: int, end: int) -> None:
        """Pages follow each other without gaps, to the chunk's end."""
        position, place = start, chunk.place
        if chunk.dictionary:
            name = f"the dictionary page of {place}"
            types = (ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DICTIONARY_PAGE)
            position = self._check_page(position, end, name, place, types, -1)
        page = 0
        while position < end:
            name = f"data page {page} of {place}"
            if page > _modules.LAST_ORDINAL:
                raise unknown(f"{name} comes after the last one that Parquet can encrypt")
            types = (ModuleType.DATA_PAGE_HEADER, ModuleType.DATA_PAGE)
            position = self._check_page(position, end, name, place, types, page)
            page += 1

    def _check_page(
        self,
        position: int,
        end: int,
        name: str,
        place: Place,
        types: tuple[ModuleType, ModuleType],
        page: int,
    ) -> int:
        """Return where the page ends."""
        header_name = f"the header of {name}"
        header_length = self._header_length(header_name, position, end)
        aad = self._aad(types[0], place, page)
        content = self._opened(header_name, position, header_length, aad)
        header = _footer.parsed(header_name, content, _PAGE_HEADER)
        start, length = position + header_length, int(header["compressed_page_size"])
        kind = _PAGE_TYPES.get(header["type"])
        if kind is None:
            raise unknown(f"{header_name} does not parse: it has no type")
        if (kind == "DICTIONARY_PAGE") != (page < 0) or kind == "INDEX_PAGE":
            raise unknown(f"{header_name} is that of a {kind}")
        if length < OVERHEAD or length > end - start:
            raise unknown(f"{name} has {length} bytes, there are {end - start}")
        module = self._file.read(start, length)
        if header["type"] == _DATA_PAGE_V2:
            _check_levels(name, header.get("data_page_header_v2"), module)
        self._modules.opened(name, module, self._aad(types[1], place, page))
        return start + length

    def _opened(self, name: str, position: int, length: int, aad: bytes) -> bytes:
        """Check a module that has to have this length."""
        if not OVERHEAD <= length <= _modules.LONGEST:
            raise unknown(f"{name} has {length} bytes, which no module has")
        return self._modules.opened(name, self._file.read(position, length), aad)

    def _header_length(self, name: str, position: int, end: int) -> int:
        """Return the length of a header, by its own account: nothing else says it."""
        most = min(end - position, _LONGEST_HEADER)
        if most >= OVERHEAD:
            length = _modules.module_length(self._file.read(position, OVERHEAD))
            if OVERHEAD <= length <= most:
                return length
        raise tampered(f"{name} does not fit: there are {end - position} bytes for it")

    def _aad(self, kind: ModuleType, place: Place, page: int = -1) -> bytes:
        return place.aad(self._footer.file_aad, kind, page)


def _check_levels(name: str, header: dict[str, int] | None, module: memoryview) -> None:
    """Of pages of version 2, Parquet's Java writer leaves the levels in plaintext."""
    if header is None:
        raise unknown(f"the header of {name} does not parse: it has no data_page_header_v2")
    levels = header["definition_levels"] + header["repetition_levels"]
    if levels > 0 and _modules.module_length(module) != len(module):
        raise FoundError(
            PLAINTEXT,
            f"{name} is not encrypted as a whole: its {levels} bytes of repetition and definition levels are "
            "plaintext, and not authenticated (it is a page of version 2, as Parquet's Java writer makes it)",
        )


def _unaccounted(start: int, end: int) -> FoundError:
    return unknown(f"bytes {start} to {end - 1} belong to no module of the file")
