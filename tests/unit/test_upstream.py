"""The patches for PyIceberg are well-formed, name their commit, and agree with this project's reader."""

import ast
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

from pyspark_iceberg_crypto.reader import _ags1
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "upstream.md").read_text()
PATCHES = sorted((ROOT / "upstream" / "iceberg-python").glob("*.patch"))
HUNK = re.compile(r"@@ -(\d+),0 \+(\d+)(?:,(\d+))? @@\n((?:\+.*\n)+)")


def added(patch: Path) -> dict[str, str]:
    """What a patch adds to each file; it takes away nothing, and has no line of another."""
    found = {}
    head, *files = re.split(r"^diff --git a/.+ b/", patch.read_text(), flags=re.MULTILINE)
    assert re.search(r"^Subject: \[PATCH \d/4\] [A-Z]", head, re.MULTILINE)
    for file in files:
        name, _, rest = file.partition("\n")
        hunks = HUNK.findall(rest)
        assert rest.count("\n@@ ") == len(hunks) > 0, name
        for _, _, count, lines in hunks:
            assert lines.count("\n") == int(count or 1), name
        changed = re.sub(r"\n\nbase-commit: .*\n$", "\n", HUNK.sub("", rest), flags=re.DOTALL)
        assert not re.search(r"^(?:-(?!--)|\+(?!\+\+)| )", changed, re.MULTILINE), name
        found[name] = "".join(re.sub("^[+]", "", hunk[3], flags=re.MULTILINE) for hunk in hunks)
    return found


def test_the_page_has_each_patch_and_their_commit() -> None:
    assert re.findall(r"`(\d{4}-[\w-]+\.patch)`", PAGE) == [one.name for one in PATCHES]
    named = [
        re.findall(r"^base-commit: (\w{40})$", patch.read_text(), re.MULTILINE) for patch in PATCHES
    ]
    assert named == [named[0]] * len(PATCHES)
    (commit,) = named[0]
    assert PAGE.count(commit) == 2


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.name[:4])
def test_a_patch_adds_lines_with_tests_and_the_license(patch: Path) -> None:
    files = added(patch)
    assert any(name.startswith("tests/") for name in files)
    for name, text in files.items():
        if f"b/{name}\nnew file mode" in patch.read_text():
            assert text.startswith("# Licensed to the Apache Software Foundation (ASF) under one\n")
            ast.parse(text)
        assert all(len(line) <= 130 for line in text.splitlines()), name


def module(tmp_path: Path, name: str) -> ModuleType:
    """A file of a patch as a module."""
    (text,) = (files[name] for patch in PATCHES if name in (files := added(patch)))
    path = tmp_path / "from_patch.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("from_patch", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.nightly
def test_the_vectors_are_as_this_reader_has_them(tmp_path: Path) -> None:
    vectors = module(tmp_path, "tests/encryption/test_vectors.py")
    for bits, length, digest in vectors.STREAMS:
        vectors.test_stream_vectors_are_pinned(bits, length, digest)
        stream = vectors._stream(bits, vectors._plaintext(length))
        key = KeyMetadata(vectors._key(bits), vectors.AAD_PREFIX, len(stream))
        file = ExpectedFile("t", "f", len(stream))
        read = _ags1.DecryptedStream(io.BytesIO(stream), key, file).read()
        assert read == vectors._plaintext(length), (bits, length)
    for encoded, bits, aad_prefix, length in vectors.KEY_METADATA:
        decoded = KeyMetadata.decode(bytes.fromhex(encoded), ExpectedFile("t", "f"))
        assert decoded == KeyMetadata(vectors._key(bits), aad_prefix or b"", length)
    for what, encoded in vectors.REFUSED_KEY_METADATA.items():
        with pytest.raises(Exception, match="key metadata"):
            KeyMetadata.decode(bytes.fromhex(encoded), ExpectedFile("t", what))
