"""What the files of a table are on disk: looked at byte by byte, with no code of the project's in between."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

MARKER = "MARKER-7f3a9c"
"""Planted in rows and partition values; may be found in no file of an encrypted table but metadata.json."""

ENCRYPTED_MAGIC = (b"PARE", b"AGS1")

# In plaintext by Iceberg's design: the table's metadata.json, Hadoop's pointer to it, and Hadoop's checksums.
PLAINTEXT_BY_DESIGN = (".metadata.json", "version-hint.text", ".crc")


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below the folder but those that are in plaintext by design."""
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith(PLAINTEXT_BY_DESIGN):
                yield path


def secret_file(path: Path, content: str | bytes) -> Path:
    """A file that only its owner may read, if it is new."""
    path.touch(mode=0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def everything_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()} if folder.is_dir() else set()


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """What is refused writes, overwrites and deletes no file below the folder."""
    before = dict(_states(folder))
    yield
    after = dict(_states(folder))
    both = before.keys() & after.keys()
    touched = {
        "written": after.keys() - both,
        "overwritten": {path for path in both if before[path] != after[path]},
        "deleted": before.keys() - both,
    }
    assert not any(touched.values()), touched


def _states(folder: Path | str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Each file with what differs once it is written again."""
    if not Path(folder).is_dir():
        return
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _states(entry.path)
        else:
            state = entry.stat()
            yield entry.path, (state.st_ino, state.st_size, state.st_mtime_ns)


def magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def plaintext_problem(path: Path, marker: str = MARKER) -> str | None:
    """What is wrong with a file that should be encrypted, or None."""
    content = path.read_bytes()
    if content[:4] not in ENCRYPTED_MAGIC:
        return f"{path} starts with {content[:4]!r}"
    if marker.encode() in content:
        return f"{path} holds {marker}"
    return None


def marker_in(folder: Path, marker: str = MARKER) -> list[Path]:
    """Files of any kind below the folder, metadata.json aside, that hold the marker."""
    found = (path for path in everything_below(folder) if not path.name.endswith(".metadata.json"))
    return sorted(path for path in found if marker.encode() in path.read_bytes())


def change(path: Path, content: bytes | None) -> None:
    """What a storage may do to a file: other bytes, or (None) no file. Hadoop's checksum goes, too.

    The bytes change at once, as in an object store: a reader beside it finds the old or the new.
    """
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if content is None:
        path.unlink()
    else:
        beside = path.with_name(f".{path.name}.changed")
        beside.write_bytes(content)
        beside.replace(path)


@contextmanager
def changed(contents: Mapping[Path, bytes | None]) -> Iterator[None]:
    """Files are changed, or gone, for a while."""
    before = {path: path.read_bytes() for path in contents}
    for path, content in contents.items():
        change(path, content)
    try:
        yield
    finally:
        for path, content in before.items():
            change(path, content)


def flipped(content: bytes, at: int | None = None) -> bytes:
    """With one bit flipped, of the byte in the middle unless told."""
    at = len(content) // 2 if at is None else at
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def path_of(location: str) -> Path:
    """The local file that a table's metadata names."""
    return Path(unquote(urlparse(location).path))
