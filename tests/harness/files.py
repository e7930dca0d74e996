"""What the files of a table are on disk: looked at byte by byte, with no code of the project's in between."""

from collections.abc import Iterator
from pathlib import Path

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


def everything_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()} if folder.is_dir() else set()


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
