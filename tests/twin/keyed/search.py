"""Looks for marks in bytes: as they are, in blocks that are compressed, and in what a reader without keys is given."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b\x08"
_LZ4_BLOCK = b"LZ4Block"
_SNAPPY = b"\x82SNAPPY\x00"
_MOST = 64 << 20  # of one block, opened


def opened(data: bytes) -> Iterator[bytes]:
    """The contents of compressed blocks, wherever they begin."""
    for found in re.finditer(re.escape(_GZIP), data):
        try:
            yield zlib.decompressobj(31).decompress(data[found.start() :], _MOST)
        except zlib.error:
            continue
    for found in re.finditer(re.escape(_ZSTD), data):
        yield _zstd(data[found.start() :])
    for found in re.finditer(re.escape(_LZ4_BLOCK), data):
        yield _block("lz4_raw", data, found.end() + 9, found.end() + 1, "little")
    for found in re.finditer(re.escape(_SNAPPY), data):
        yield b"".join(_snappy_blocks(data, found.end() + 8))
    if data[:4] == b"PK\x03\x04":
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                yield from (archive.read(name) for name in archive.namelist())
        except (zipfile.BadZipFile, RuntimeError):
            return


def _zstd(data: bytes) -> bytes:
    """As much as there is: Spark's event log is not ended while it runs."""
    out = bytearray()
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while len(out) < _MOST and (more := stream.read(1 << 16)):
                out += more
    except OSError:
        pass
    return bytes(out)


def _block(codec: str, data: bytes, start: int, lengths: int, order: str) -> bytes:
    little = order == "little"
    sizes = [
        int.from_bytes(data[at : at + 4], "little" if little else "big")
        for at in (lengths, lengths + 4)
    ]
    # LZ4Block: token, compressed and decompressed lengths, checksum
    body = data[start + 4 : start + 4 + sizes[0]]
    if sizes[0] == sizes[1]:
        return body
    try:
        return bytes(pa.Codec(codec).decompress(body, min(sizes[1], _MOST)))
    except (OSError, pa.ArrowException):
        return b""


def _snappy_blocks(data: bytes, at: int) -> Iterator[bytes]:
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + length]
        at += 4 + length
        size, shift = 0, 0
        for byte in block[:5]:  # the length of what is in it
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        try:
            yield bytes(pa.Codec("snappy").decompress(block, min(size, _MOST)))
        except (OSError, pa.ArrowException):
            return


def without_keys(path: Path) -> Iterator[bytes]:
    """What pyarrow reads of a Parquet or ORC file without any key, each column by itself.

    Not the footer, whose bytes are searched: asked for an encrypted column's metadata, pyarrow ends the process.
    """
    head = path.open("rb").read(4)
    if head == b"PAR1":
        file = pq.ParquetFile(path)
        for group in range(file.metadata.num_row_groups):
            for index in range(file.metadata.num_columns):
                name = file.metadata.schema.column(index).path
                try:
                    yield repr(file.read_row_group(group, columns=[name]).to_pylist()).encode()
                except (OSError, pa.ArrowException):
                    continue  # encrypted
    elif head[:3] == b"ORC":
        yield repr(pyarrow.orc.ORCFile(path).read().to_pylist()).encode()


@dataclass
class Search:
    """All files below some folders, each once for as long as it does not change.

    Attributes:
        roots: where something is written.
        aside: parts of a path that the documents say are plaintext: looked at, and counted apart.
    """

    roots: list[Path]
    aside: tuple[str, ...] = ()
    seen: dict[Path, tuple[int, int]] = field(default_factory=dict)
    files: int = 0
    searched: int = 0
    told: dict[str, int] = field(default_factory=dict)

    def find(self, needles: Iterable[bytes]) -> list[str]:
        """The files that hold one of them."""
        pattern = re.compile(b"|".join(map(re.escape, needles)))
        found = []
        for path, data in self._fresh():
            blocks = [data, *opened(data), *without_keys(path)]
            self.files += 1
            self.searched += sum(map(len, blocks))
            if any(map(pattern.search, blocks)):
                part = next((part for part in self.aside if part in str(path)), None)
                if part is None:
                    found.append(str(path))
                else:
                    self.told[part] = self.told.get(part, 0) + 1
        return found

    def forget(self) -> None:
        """New marks: what is still written to is searched again."""
        self.seen = {path: state for path, state in self.seen.items() if path.is_file()}

    def _fresh(self) -> Iterator[tuple[Path, bytes]]:
        for path in (path for root in self.roots for path in root.rglob("*")):
            try:
                if path.suffix == ".jar" or not path.is_file():
                    continue
                state = path.stat().st_size, path.stat().st_mtime_ns
                if self.seen.get(path) != state:
                    self.seen[path] = state
                    yield path, path.read_bytes()
            except FileNotFoundError:
                continue  # Spark's own, of a shuffle
