"""Every module of encrypted Parquet, checked in Python: what Java's DeepParquetTest and OtherParquetTest expect."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_iceberg_crypto.errors import IcebergCryptoError, PlaintextFoundError
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof import _modules, _one, _parquet, _problems, _stored
from pyspark_iceberg_crypto.reader.proof._tree import Listed
from reader.forged_parquet import (
    BINARY,
    BLOOM_BITSET,
    BLOOM_HEADER,
    COLUMN_INDEX,
    DATA,
    DATA_HEADER,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    I32,
    I64,
    INDEX_PAGE,
    LIST,
    OFFSET_INDEX,
    STRUCT,
    Forger,
    page_header,
    struct,
)
from reader.parquet_files import PREFIX, File, InMemory, pairs_of_one_length, parquet, swapped

VECTORS = Path(__file__).parents[1] / "vectors"
FAILS = " fails authentication with the file's key: it was changed, or comes from elsewhere"


@pytest.fixture(scope="module")
def file() -> File:
    return parquet(groups=2)


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_arrow(version: int) -> None:
    """The same vectors as Java's: a flipped bit is found in its module, and named after it."""
    whole = File((VECTORS / f"pyarrow-pages-v{version}.parquet").read_bytes())
    assert whole.problem() is None
    named = set()
    modules = list(whole.modules())
    some = [*modules[:60:4], *modules[-18::4], modules[-1]]
    for start, end in some:
        code, words = whole.flipped((start + end) // 2).problem() or ("", "")
        assert (code, words.endswith(FAILS)) == ("tampered", True), words
        named.add(words.removesuffix(FAILS))
    assert len(named) == len(some), "two modules have one name"
    assert {
        "the header of data page 0 of column id in row group 0",
        "the offset index of column tags.list.element in row group 2",
    } <= named


@pytest.mark.parametrize("key_length", [16, 24, 32])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_clean_files(key_length: int, version: str) -> None:
    made = parquet(key=bytes(key_length), data_page_version=version, groups=3)
    found = made.check()
    assert (found.problem, found.magic, found.length) == (None, "PARE", len(made.data))


def test_no_bit_can_be_flipped() -> None:
    """In every byte one bit, and all in what is not encrypted; only of that may nothing be known."""
    file = parquet(rows=6)
    for at in range(len(file.data)):
        plaintext = at < 4 or file.footer <= at < file.footer + 40 or at >= len(file.data) - 8
        for bit in range(8 if plaintext else 1):
            code, words = file.flipped(at, bit).problem() or ("", "")
            assert code and (plaintext or code == "tampered"), f"bit {bit} of byte {at}: {words}"


def test_no_bit_of_what_arrow_does_not_write_can_be_flipped() -> None:
    made = forged().file()
    assert made.problem() is None
    for at in range(4, made.footer):
        code, words = made.flipped(at).problem() or ("", "")
        assert code == "tampered", f"byte {at}: {words}"
    assert made.flipped(made.footer - 1).problem() == (
        "tampered",
        f"the bloom filter of column c0 in row group 0{FAILS}",
    )


def test_cut_off_and_appended(file: File) -> None:
    """The length of the key metadata is that of the hostile file: what is left tells by itself."""
    for end in range(len(file.data)):
        code, _ = file.having(file.data[:end]).problem() or ("", "")
        assert code in ("tampered", "truncated", "plaintext"), end
    for more in (b"\0", file.data, file.data[file.footer :]):
        code, _ = file.having(file.data + more).problem() or ("", "")
        assert code in ("tampered", "unreadable"), more[:4]


def test_modules_that_change_places(file: File) -> None:
    tried = 0
    for one, other in pairs_of_one_length(file):
        code, words = swapped(file, one, other).problem() or ("", "")
        assert code == "tampered", words
        tried += 1
    assert tried > 10


def test_parts_of_another_file(file: File) -> None:
    """A file of the same key, rows and places: only its identifier, in the footer's AAD, tells it."""
    other = parquet(groups=2)
    assert (other.footer, len(other.data)) == (file.footer, len(file.data))
    footer = file.having(file.data[: file.footer] + other.data[file.footer :]).problem()
    assert footer == ("tampered", f"the header of data page 0 of column id in row group 0{FAILS}")
    for start, end in file.modules():
        data = file.data[:start] + other.data[start:end] + file.data[end:]
        code, words = file.having(data).problem() or ("", "")
        assert (code, words.endswith(FAILS)) == ("tampered", True)


def test_other_keys_and_prefixes(file: File) -> None:
    footer = ("tampered", f"the footer{FAILS}")
    assert File(file.data, bytes(16)).problem() == footer
    assert File(file.data, prefix=bytes(16)).problem() == footer
    without = "it says that it has an AAD prefix; its key metadata has none"
    assert File(file.data, prefix=b"").problem() == ("tampered", without)
    stored = parquet(stored=True)
    assert stored.problem() is None
    other = ("tampered", "its AAD prefix is not that of its key metadata")
    assert File(stored.data, prefix=b"\1").problem() == other
    none = parquet(prefix=None)
    assert none.problem() is None
    has = "it says that it has no AAD prefix; its key metadata has one"
    assert File(none.data).problem() == ("tampered", has)


def test_pages_without_tags() -> None:
    made = parquet(algorithm="AES_GCM_CTR_V1")
    assert made.problem("structure") is None
    code, words = made.problem() or ("", "")
    assert code == "unauthenticated"
    assert words.startswith("its pages are encrypted with AES_GCM_CTR_V1, which does not authen")


def test_bytes_of_no_module(file: File) -> None:
    words = f"bytes {file.footer} to {file.footer + 4} belong to no module of the file"
    data = file.data[: file.footer] + b"12345" + file.data[file.footer :]
    assert file.having(data).problem() == ("unreadable", words)


def forged(**settings: Any) -> Forger:
    """A column with a dictionary and all that can belong to it, in this order."""
    forger = Forger()
    start, data = forger.pages(dictionary=True)
    length = len(forger.data) - start
    column_index = len(forger.data), forger.module(COLUMN_INDEX, b"index")
    offset_index = len(forger.data), forger.module(OFFSET_INDEX, b"")
    bloom = len(forger.data)
    bits = settings.get("bits", 8)
    of_bloom = forger.module(BLOOM_HEADER, struct([(1, I32, bits)]))
    of_bloom += forger.module(BLOOM_BITSET, b"12345678")
    forger.column(
        start,
        data,
        length,
        (14, I64, bloom),
        *([(15, I32, of_bloom)] if settings.get("bloom_length", True) else []),
        chunk=[
            *((4, I64, offset_index[0]), (5, I32, offset_index[1])),
            *((6, I64, column_index[0]), (7, I32, column_index[1])),
        ],
    )
    return forger


def simple(**of: Any) -> Forger:
    forger = Forger()
    start, data = forger.pages()
    forger.column(start, data, len(forger.data) - start, **of)
    return forger


def with_page(header: bytes, content: bytes = b"1234567", page: int = 0) -> Forger:
    forger = Forger()
    forger.module(DATA_HEADER, header, page=page)
    forger.module(DATA, content, page=page)
    forger.column(4, 4, len(forger.data) - 4)
    return forger


PAGE = "data page 0 of column c0 in row group 0"


def test_bloom_filters() -> None:
    assert forged(bloom_length=False).file().problem() is None, "an older writer's"
    words = "the bloom filter of column c0 in row group 0 has 8 bytes, expected 9"
    assert forged(bits=9).file().problem() == ("unreadable", words)


def test_columns_that_are_not_encrypted_with_the_key_of_the_file() -> None:
    plaintext = simple(crypto=None).file().problem()
    assert plaintext == ("plaintext", "column c0 in row group 0 is not encrypted")
    own = simple(crypto=[(2, STRUCT, [(1, LIST, (BINARY, [b"a", b"b"]))])]).file().problem()
    words = "column a.b in row group 0 is encrypted with a key of its own, which the table does not have"
    assert own == ("unreadable", words)
    elsewhere = simple(chunk=[(8, STRUCT, [(1, STRUCT, [])])], crypto=None)
    elsewhere.chunks[0] = [(1, BINARY, b"other.parquet"), *elsewhere.chunks[0]]
    words = "the footer does not say where in the file column c0 in row group 0 is"
    assert elsewhere.file().problem() == ("unreadable", words)


def test_pages_that_no_writer_makes() -> None:
    """Authentic ones: whoever has the key made them."""
    assert with_page(page_header(DATA_PAGE, 39)).file().problem() is None
    for kind, name in ((INDEX_PAGE, "INDEX_PAGE"), (DICTIONARY_PAGE, "DICTIONARY_PAGE")):
        problem = with_page(page_header(kind, 39)).file().problem()
        assert problem == ("unreadable", f"the header of {PAGE} is that of a {name}")
    for length in (-1, 31, 40, 2**31 - 1):
        problem = with_page(page_header(DATA_PAGE, length)).file().problem()
        assert problem == ("unreadable", f"{PAGE} has {length} bytes, there are 39")
    code, words = with_page(b"\x15").file().problem() or ("", "")
    assert (code, words) == (
        "unreadable",
        f"the header of {PAGE} does not parse: it ends too early",
    )
    code, words = with_page(page_header(9, 39)).file().problem() or ("", "")
    assert (code, words[:60]) == ("unreadable", f"the header of {PAGE} does not parse: "[:60])


def test_levels_in_plaintext() -> None:
    """Of pages of version 2: Arrow encrypts the page as a whole, Parquet's Java writer leaves its levels."""
    header = page_header(DATA_PAGE_V2, 39, (2, 3))
    assert with_page(header).file().problem() is None
    code, words = levels_in_plaintext().problem() or ("", "")
    assert code == "plaintext"
    assert words.startswith(f"{PAGE} is not encrypted as a whole: its 5 bytes of repetition and")


def levels_in_plaintext() -> File:
    forger = Forger()
    forger.module(DATA_HEADER, page_header(DATA_PAGE_V2, 44, (2, 3)), page=0)
    forger.data += b"12345"
    forger.module(DATA, b"1234567", page=0)
    forger.column(4, 4, len(forger.data) - 4)
    return forger.file()


@pytest.mark.parametrize(
    ("made", "has_key", "kind", "says", "code"),
    [
        (levels_in_plaintext, True, PlaintextFoundError, f"f: {PAGE} is not enc", "plaintext"),
        (parquet, False, IcebergCryptoError, "f could not be checked: the table has no", "no-key"),
        (
            partial(parquet, algorithm="AES_GCM_CTR_V1"),
            True,
            IcebergCryptoError,
            "f could not be checked: its pages are encrypted with AES_GCM_CTR_V1",
            "unauthenticated",
        ),
    ],
)
def test_an_inspection_does_not_accuse(
    made: Callable[[], File], has_key: bool, kind: type[IcebergCryptoError], says: str, code: str
) -> None:
    """What only has no key, say, was not tampered with: an inspection says what a verification says."""
    file = made()
    length = len(file.data)
    key = KeyMetadata(file.key, file.prefix, length).encode() if has_key else None
    known = Listed(_problems.DATA, "s3://b/f", "parquet", length, key)
    with pytest.raises(IcebergCryptoError) as raised:
        _one.checked(InMemory(file.data), known, True, None)
    assert type(raised.value) is kind
    assert raised.value.message.startswith(f"s3://b/{says}")
    assert raised.value.hint == _problems.hint(code, _problems.DATA)


def test_parts_that_do_not_follow_each_other() -> None:
    for start, length, expected in (
        (5, 155, "bytes 4 to 4 belong to no module of the file"),
        (4, 10**12, "is not where it should be: from byte 4, 1000000000000 bytes, expected byte 4"),
        (2, 155, "is not where it should be: from byte 2, 155 bytes, expected byte 4"),
    ):
        forger = Forger()
        forger.pages()
        forger.column(start, start, length)
        code, words = forger.file().problem() or ("", "")
        assert (code, words.endswith(expected)) == ("unreadable", True), words
    code, words = simple().file(ordinal=-1).problem() or ("", "")
    assert (code, "row group ordinal" in words) == ("unreadable", True)


def test_lengths_are_bounded_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No length that is not authenticated makes the check read, or allocate, more than there is."""
    made = parquet()
    asked: list[int] = []
    real = _stored.StoredFile.read

    def read(self: Any, position: int, count: int) -> memoryview:
        assert 0 <= position <= position + count <= self.length
        asked.append(count)
        return real(self, position, count)

    monkeypatch.setattr(_stored.StoredFile, "read", read)
    for start, end in made.modules():
        data = made.data[:start] + b"\xff\xff\xff\x7f" + made.data[start + 4 :]
        code, words = made.having(data).problem() or ("", "")
        assert code == "tampered", words
        assert "does not fit" in words or "that it should have" in words
        del end
    huge = made.data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PARE"
    assert (made.having(huge).problem() or ("",))[0] == "tampered"
    assert max(asked) <= len(made.data)


def test_unknown_parts_of_file_crypto_metadata() -> None:
    """They are not authenticated, and a reader may understand them in another way."""
    settings_of = [(2, BINARY, b"a file's"), (3, 1, None), (9, I32, 5)]
    problem = simple().file(settings_of).problem()
    assert problem == ("unreadable", "its file crypto metadata has unknown parts")


def test_a_file_that_is_longer_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in pieces, from start to end."""
    monkeypatch.setattr(_stored, "WHOLE", 100)
    monkeypatch.setattr(_stored, "_WINDOW", 300)
    made = parquet(rows=60, groups=2)
    assert made.problem() is None
    for start, end in made.modules():
        code, words = made.flipped((start + end) // 2).problem() or ("", "")
        assert (code, words.endswith(FAILS)) == ("tampered", True)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([parquet(rows=12, groups=2), forged().file()]),
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.binary(max_size=8)),
        min_size=1,
        max_size=4,
    ),
)
def test_any_bytes_end_with_an_answer(made: File, changes: list[Any]) -> None:
    """Only the file as it was written is fine."""
    data = made.data
    for at, end, source, bytes_of in changes:
        start, stop = sorted(int(one * len(data)) for one in (at, end))
        copied = int(source * len(data))
        data = data[:start] + bytes_of + data[copied : copied + stop - start] + data[stop:]
    assert (made.having(data).problem() is None) == (data == made.data)


def test_the_constants_are_those_of_the_specification() -> None:
    assert [kind.value for kind in _modules.ModuleType] == list(range(10))
    assert _parquet._LONGEST_FOOTER == 100 * 2**20 - 8
    assert PREFIX != b""
