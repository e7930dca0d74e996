"""Encrypted files as an attacker may make them: real ones with changes, and footers of random Thrift."""

import io
import os
import random
import zipfile
from pathlib import Path

SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "0"))
VECTORS = Path(__file__).parents[1] / "vectors"
NUMBERS = (0, 1, 7, 27, 28, 29, 32, 33, 36, 44, 127, 128, 255, 4095, 4096, 4097)
NUMBERS += (1 << 20, 64 << 20, 2**31 - 1, 2**31, 2**32 - 1)

MOST_DEPTH = 22  # of structs and lists in each other; 16 are taken


def little(number: int) -> bytes:
    return (number % 2**32).to_bytes(4, "little")


def vectors() -> list[bytes]:
    """AES GCM streams that another implementation wrote, and Parquet files of an earlier build."""
    found = [path.read_bytes() for path in sorted(VECTORS.glob("**/*.ags1"))]
    found.append((VECTORS / "iceberg-rust-manifest-list.avro").read_bytes())
    for archive in sorted(VECTORS.glob("tables-*.zip")):
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as tables:
            names = [name for name in sorted(tables.namelist()) if name.endswith(".parquet")]
            found += [tables.read(name) for name in names[:2]]
    return found


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def value(rng: random.Random, kind: int, depth: int) -> bytes:
    """A value of a type of Thrift's compact protocol."""
    if kind in (1, 2):
        return b""
    if kind == 3:
        return rng.randbytes(1)
    if kind in (4, 5, 6):
        return varint(rng.choice(NUMBERS))
    if kind == 7:
        return rng.randbytes(8)
    if kind == 8:
        text = rng.randbytes(rng.choice((0, 1, 8, 16, 200)))
        return varint(len(text)) + text
    if kind in (9, 10):
        element = rng.randrange(14 if depth < MOST_DEPTH else 9)
        size = rng.choice((0, 1, 1, 1) if element > 8 else (0, 1, 3, 15, 20))
        head = bytes([size << 4 | element]) if size < 15 else bytes([0xF0 | element]) + varint(size)
        if element in (1, 2):
            return head + rng.randbytes(size)
        return head + b"".join(value(rng, element, depth + 1) for _ in range(size))
    if kind == 11:
        size = rng.choice((0, 1, 3))
        return varint(size) + (b"" if size == 0 else rng.randbytes(1 + 2 * size))
    if kind == 12:
        return struct(rng, depth + 1)
    return rng.randbytes(16)


def struct(rng: random.Random, depth: int, *known: bytes) -> bytes:
    """A struct with known fields, and random ones before, between and behind them."""
    out = b""
    for field in (*known, None):
        while depth < MOST_DEPTH and rng.randrange(4) == 0:
            kind, delta = rng.randrange(1, 14), rng.randrange(16)
            number = varint(rng.choice(NUMBERS)) if delta == 0 else b""
            out += bytes([delta << 4 | kind]) + number + value(rng, kind, depth)
        out += field or b""
    return out + b"\0"


def crypto_metadata(rng: random.Random) -> bytes:
    """A FileCryptoMetaData, more or less."""
    settings = struct(
        rng, 2, *(b"\x18" + value(rng, 8, 0), b"\x18" + value(rng, 8, 0))[: rng.randrange(3)]
    )
    if rng.randrange(2):
        settings = settings[:-1] + rng.choice((b"\x11\0", b"\x12\0", b"\x31\0"))
    union = bytes([rng.choice((0x1C, 0x1C, 0x2C, 0x3C, 0x18))]) + settings
    union += rng.choice((b"\0", b"\0", b"\x11", b""))
    key = b"\x18" + value(rng, 8, 0)
    return struct(rng, 1, b"\x1c" + union, *[key][: rng.randrange(2)])


def pare(crypto: bytes) -> bytes:
    """An encrypted Parquet file with this in its footer."""
    footer = crypto + little(38) + bytes(38)
    return b"PARE" + bytes(50) + footer + little(len(footer)) + b"PARE"


def at_the_limits() -> list[bytes]:
    """Lengths where readers of numbers break, and Thrift's own oddities."""
    found = [b"AGS1" + little(n) + bytes(28 + n % 64) for n in NUMBERS]
    found += [b"PARE" + bytes(60) + little(n) + b"PARE" for n in NUMBERS]
    gcm = b"\x1c\x1c\0\0"
    found += [pare(gcm + bytes([0x29, kind]) + b"\0") for kind in range(16)]  # empty lists
    found += [
        pare(gcm + b"\x2b\x01" + bytes([kind]) + bytes(40))
        for kind in (*range(15), *range(15, 256, 17))
    ]  # maps
    found += [pare(gcm + b"\x29" + b"\x19" * deep + b"\0\0") for deep in range(13, 19)]
    return [*found, b"", b" {", b"ORC", b"PAR1", b"Obj\x01", b"PFA1", b"AGS1", b"PARE"]


def parquet(rng: random.Random) -> bytes:
    """An encrypted Parquet file with such a footer, whose lengths are nearly always right."""
    crypto = crypto_metadata(rng)
    module = 12 + rng.choice((0, 10, 5000)) + 16
    footer = crypto + little(module if rng.randrange(20) else rng.choice(NUMBERS)) + bytes(module)
    length = len(footer) if rng.randrange(20) else rng.choice(NUMBERS)
    return b"PARE" + bytes(rng.randrange(100)) + footer + little(length) + b"PARE"


def mutated(rng: random.Random, valid: bytes) -> bytes:
    """Valid bytes with up to four changes, of which half are near the ends."""
    data = bytearray(valid)
    for _ in range(rng.randrange(5)):
        if not data:
            break
        at = rng.randrange(len(data))
        if rng.randrange(2):
            at = rng.choice(
                (min(at, rng.randrange(16)), max(0, len(data) - 1 - rng.randrange(130)))
            )
        match rng.randrange(5):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + 4] = little(rng.choice(NUMBERS))
            case 2:
                del data[at:]
            case 3:
                data[at:at] = rng.randbytes(rng.randrange(12))
            case _:
                del data[at : at + 9]
    return bytes(data)


def file(seed: int, valid: list[bytes]) -> bytes:
    """The hostile file of a seed."""
    rng = random.Random(seed)
    if rng.randrange(2):
        made = parquet(rng)
        return made if rng.randrange(3) else mutated(rng, made)
    return mutated(rng, rng.choice(valid))
