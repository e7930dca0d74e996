"""What someone with write access to the storage can do to a file: its bytes before, its bytes after."""

import random
from collections.abc import Callable
from dataclasses import dataclass

HEADER = 8  # of AGS1: magic and block length
BLOCK = (1 << 20) + 28  # of AGS1: a full block with nonce and tag


@dataclass(frozen=True)
class Sources:
    """Files that an attacker finds: of the same kind, and a plaintext one of the same content or format."""

    same_table: bytes
    other_table: bytes
    older: bytes
    plaintext: bytes


Attack = Callable[[bytes, Sources, random.Random], bytes | None]
"""Makes the file that replaces the first one; None when the attack needs more blocks than it has."""


def flip(file: bytes, _: Sources, rng: random.Random) -> bytes:
    """Not in the upper half of a Parquet module's length: Parquet allocates gigabytes then (see docs/tamper.md)."""
    lengths = {at + byte for at in module_starts(file) for byte in (2, 3)}
    at = next(at for at in iter(lambda: rng.randrange(len(file)), None) if at not in lengths)
    return file[:at] + bytes([file[at] ^ (1 << rng.randrange(8))]) + file[at + 1 :]


def module_starts(file: bytes) -> list[int]:
    """Where the modules of a Parquet file start: page headers, pages, indexes; the footer is the last."""
    if file[:4] != b"PARE":
        return []
    footer = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    starts = []
    at = 4
    while at < footer:
        starts.append(at)
        at += 4 + int.from_bytes(file[at : at + 4], "little")
    assert at == footer, "the modules do not fill the file"
    in_footer = range(footer, len(file) - 12)  # behind plaintext that says how it is encrypted
    ends_right = (
        i for i in in_footer if i + 4 + int.from_bytes(file[i : i + 4], "little") == len(file) - 8
    )
    return [*starts, next(ends_right)]


def header(file: bytes) -> int:
    return 4 if file[:4] == b"PARE" else HEADER


def blocks(file: bytes) -> list[bytes]:
    """The blocks of an AGS1 file, the modules of a Parquet file."""
    starts = module_starts(file)
    if not starts:
        return [file[at : at + BLOCK] for at in range(HEADER, len(file), BLOCK)]
    footer = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    ends = [*starts[1:-1], footer]
    return [file[start:end] for start, end in zip(starts[:-1], ends, strict=True)]


def rebuilt(file: bytes, new: list[bytes]) -> bytes:
    start = header(file)
    return file[:start] + b"".join(new) + file[start + sum(map(len, blocks(file))) :]


def two_of_one_length(pieces: list[bytes], rng: random.Random) -> tuple[int, int] | None:
    """Any two, the largest that there are: their file stays as long when they are exchanged."""
    for length in sorted({len(piece) for piece in pieces}, reverse=True):
        same = [i for i, piece in enumerate(pieces) if len(piece) == length]
        if len(same) > 1:
            one, two = rng.sample(same, 2)
            return one, two
    return None


def cut_inside(file: bytes, _: Sources, rng: random.Random) -> bytes:
    return file[: rng.randrange(HEADER + 1, len(file))]


def cut_at_a_block(file: bytes, _: Sources, rng: random.Random) -> bytes | None:
    pieces = blocks(file)
    if len(pieces) < 2:
        return None
    return rebuilt(file, pieces[: rng.randrange(1, len(pieces))])[: len(file) - 1]


def cut_by_a_byte(file: bytes, _: Sources, __: random.Random) -> bytes:
    return file[:-1]


def cut_to_the_header(file: bytes, _: Sources, __: random.Random) -> bytes:
    return file[:HEADER]


def cut_to_nothing(_: bytes, __: Sources, ___: random.Random) -> bytes:
    return b""


def append_a_byte(file: bytes, _: Sources, __: random.Random) -> bytes:
    return file + b"\0"


def append_a_block(file: bytes, _: Sources, __: random.Random) -> bytes:
    return file + blocks(file)[-1]


def swap_blocks(file: bytes, _: Sources, rng: random.Random) -> bytes | None:
    pieces = blocks(file)
    two = two_of_one_length(pieces, rng)
    if two is None:
        return None
    pieces[two[0]], pieces[two[1]] = pieces[two[1]], pieces[two[0]]
    return rebuilt(file, pieces)


def drop_a_block(file: bytes, _: Sources, rng: random.Random) -> bytes | None:
    pieces = blocks(file)
    if len(pieces) < 2:
        return None
    del pieces[rng.randrange(len(pieces) - 1)]
    return rebuilt(file, pieces)


def duplicate_a_block(file: bytes, _: Sources, rng: random.Random) -> bytes | None:
    pieces = blocks(file)
    if len(pieces) < 2:
        return None
    at = rng.randrange(len(pieces) - 1)
    return rebuilt(file, pieces[: at + 1] + pieces[at:])


def overwrite_a_block(file: bytes, _: Sources, rng: random.Random) -> bytes | None:
    """A copy of one block in the place of another: the length stays."""
    pieces = blocks(file)
    two = two_of_one_length(pieces, rng)
    if two is None:
        return None
    pieces[two[0]] = pieces[two[1]]
    return rebuilt(file, pieces)


def zero_a_range(file: bytes, _: Sources, rng: random.Random) -> bytes:
    start = rng.randrange(HEADER, len(file))
    end = min(len(file), start + rng.randrange(1, 200))
    return file[:start] + bytes(end - start) + file[end:]


def noise(file: bytes, _: Sources, rng: random.Random) -> bytes:
    """Parquet's modules keep their lengths."""
    kept = len(file) - len(rebuilt(file, []))
    starts = module_starts(file)[:-1] or [header(file) - 4]
    changed = bytearray(file[: header(file)] + rng.randbytes(kept) + file[header(file) + kept :])
    for at in starts:
        changed[at : at + 4] = file[at : at + 4]
    return bytes(changed)


def exchange_same_table(_: bytes, sources: Sources, __: random.Random) -> bytes:
    return sources.same_table


def exchange_other_table(_: bytes, sources: Sources, __: random.Random) -> bytes:
    return sources.other_table


def exchange_older(_: bytes, sources: Sources, __: random.Random) -> bytes:
    return sources.older


def of_length(source: bytes, length: int) -> bytes:
    """Another file made as long: the attack that a comparison of lengths does not see."""
    return (source + bytes(length))[:length]


def exchange_same_table_of_length(file: bytes, sources: Sources, _: random.Random) -> bytes:
    return of_length(sources.same_table, len(file))


def exchange_other_table_of_length(file: bytes, sources: Sources, _: random.Random) -> bytes:
    return of_length(sources.other_table, len(file))


def exchange_older_of_length(file: bytes, sources: Sources, _: random.Random) -> bytes:
    return of_length(sources.older, len(file))


def plaintext(_: bytes, sources: Sources, __: random.Random) -> bytes:
    return sources.plaintext


def plaintext_of_length(file: bytes, sources: Sources, _: random.Random) -> bytes:
    """Parquet reads from its end: what is filled in goes in front of the footer."""
    source = sources.plaintext
    fill = bytes(max(0, len(file) - len(source)))
    if source[:4] != b"PAR1":
        return (source + fill)[: len(file)]
    assert fill or len(source) == len(file), "the plaintext file is longer than the encrypted one"
    footer = int.from_bytes(source[-8:-4], "little") + 8
    return source[:-footer] + fill + source[-footer:]


FLIP = "bit flip at a random position"
ATTACKS: dict[str, Attack] = {
    FLIP: flip,
    "up to 200 bytes zeroed": zero_a_range,
    "everything but the header overwritten with random bytes": noise,
    "truncated inside a block": cut_inside,
    "truncated at a block boundary": cut_at_a_block,
    "truncated by one byte": cut_by_a_byte,
    "truncated to the header": cut_to_the_header,
    "truncated to zero bytes": cut_to_nothing,
    "one byte appended": append_a_byte,
    "a copy of its last block appended": append_a_block,
    "two blocks swapped": swap_blocks,
    "a block removed": drop_a_block,
    "a block duplicated": duplicate_a_block,
    "a block copied over another": overwrite_a_block,
    "another file of the table": exchange_same_table,
    "another file of the table, padded to the same length": exchange_same_table_of_length,
    "a file of another table": exchange_other_table,
    "a file of another table, padded to the same length": exchange_other_table_of_length,
    "a file of an older snapshot": exchange_older,
    "a file of an older snapshot, padded to the same length": exchange_older_of_length,
    "a plaintext file": plaintext,
    "a plaintext file of the same length": plaintext_of_length,
}
