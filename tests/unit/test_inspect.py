"""The command `inspect` on local files, without a JVM. Their fuzzed twin: catalog/proof/test_inspect.py."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from harness import hostile

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    ConfigurationError,
    FileKey,
    TamperedError,
    cli,
    inspect_file,
)
from pyspark_iceberg_crypto.cli import _inspect, _session
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.verbs.inspection import inspect_local

VECTORS = hostile.VECTORS
SPARK: Any = None  # the arguments are refused before
AGS1 = VECTORS / "iceberg-rust-manifest-list.avro"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["inspect", *map(str, arguments)])


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(_session, "session", started)


@pytest.fixture
def pare(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    path.write_bytes(hostile.vectors()[-1])
    return path


def test_what_another_implementation_wrote() -> None:
    found = inspect_local(str(AGS1))
    assert found.to_dict() == {
        "path": str(AGS1),
        "length": 1568,
        "magic": "AGS1",
        "format": "aes-gcm-stream",
        "encrypted": True,
        "block_size": 1 << 20,
        "block_count": 1,
        "plaintext_length": 1532,
    }
    for keys in (16, 24, 32):
        for length in (0, 1):
            one = inspect_local(str(VECTORS / f"made_rust/k{keys}_{length}.ags1"))
            assert (one.magic, one.block_count, one.plaintext_length) == ("AGS1", 1, length)


def test_an_encrypted_parquet_file(pare: Path) -> None:
    found = inspect_local(f"file:{pare}")
    assert (found.magic, found.algorithm) == ("PARE", "AES_GCM_V1")
    assert (found.aad_prefix_supplied, found.aad_prefix_stored) == (True, False)
    assert found.aad_file_unique_length == 8
    assert found.footer_length is not None and found.footer_length > 100
    assert "its structure is intact; no tag was checked" in str(found)
    assert str(found).startswith(f"file:{pare}\n")


@pytest.mark.parametrize(
    ("content", "magic"),
    [
        (b"", "EMPTY"),
        (b"PAR1....PAR1", "PAR1"),
        (b"Obj\x01x", "AVRO"),
        (b"PFA1", "PUFFIN"),
        (b"ORC", "ORC"),
        (b" \t\r\n{}", "JSON"),
        (b"\x0b{", "OTHER"),
        (b" " * 64 + b"{", "OTHER"),
        (b"PAR", "OTHER"),
        (b"AGS2", "LATER"),
        (b"PARX" + bytes(60), "LATER"),
        (b"PAR0", "OTHER"),
    ],
    ids=str,
)
def test_plaintext(tmp_path: Path, content: bytes, magic: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    found = inspect_local(str(path))
    assert (found.magic, found.encrypted, found.length) == (magic, False, len(content))
    assert "- not encrypted" in str(found)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"AGS1", "4 bytes long: expected at least 36 bytes"),
        (b"AGS1" + bytes(32), "a block length of 0 bytes"),
        (b"AGS1" + b"\xff" * 4 + bytes(28), "a block length of 4294967295 bytes"),
        (b"AGS1\0\0\x10\0" + bytes((1 << 20) + 28 + 28), "there are 28 bytes"),
        (b"PARE" + bytes(40), "expected more than 44 bytes"),
        (b"PARE" + bytes(41), "to end with PARE too"),
        (b"PARE" + bytes(60) + b"\x40\0\0\0PARE", "a footer of 64 bytes, expected 33 to 60"),
        (b"PARE" + bytes(60) + b"\x3c\0\0\0PARE", "does not parse as file crypto metadata"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_files(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(TamperedError) as caught:
        inspect_local(str(path))
    assert says in caught.value.message
    assert str(path) in caught.value.message
    assert "Restore this file" in caught.value.hint
    assert "Until then, expire and rewrite nothing" in caught.value.hint
    assert run(path).exit_code == 1


def test_a_huge_file_is_read_at_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"AGS1\0\0\x10\0")
        file.truncate(8 + 10_000 * ((1 << 20) + 28))  # sparse: 10 GB
    assert inspect_local(str(path)).block_count == 10_000


def test_what_cannot_be_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "none", tmp_path, pipe, pipe / "below", "with\0zero", ""):
        with pytest.raises(ConfigurationError):
            inspect_local(str(path))


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.touch()

    def denied(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(AccessDeniedError, match="permission denied"):
        inspect_local(str(path))


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a b/c:d", "/a b/c:d"),
        ("a:b", "a:b"),
        ("file:/a", "/a"),
        ("file:///a", "/a"),
        ("FILE:a", "a"),
        ("s3://b/k", None),
        ("hdfs:/a", None),
        ("s3a://b", None),
    ],
)
def test_local_paths(location: str, path: str | None) -> None:
    assert _files.local_path(location) == path


def test_hostile_files_give_an_answer_or_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "f"
    valid = hostile.vectors()
    answers = 0
    for seed in range(int(os.environ.get("ICEBERG_CRYPTO_FUZZ", "2000")) // 5):
        path.write_bytes(hostile.file(hostile.SEED + seed, valid))
        try:
            answers += inspect_local(str(path)).length >= 0
        except TamperedError as error:
            assert error.hint, f"seed {hostile.SEED + seed}"
        except Exception as error:
            raise AssertionError(f"seed {hostile.SEED + seed}") from error
    assert 0 < answers < 2_000_000


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="both a table and a key"):
        inspect_file(SPARK, "f", table="t", key=FileKey(env="K"))
    with pytest.raises(ConfigurationError, match="needs a table or a key"):
        inspect_file(SPARK, "f", decrypt_to="g")
    with pytest.raises(ConfigurationError, match="is not overwritten"):
        inspect_file(SPARK, "f", table="t", decrypt_to=str(AGS1))
    for arguments, says in (
        (("f", "--key-env", "K"), "without --aad-prefix"),
        (("f", "--aad-prefix", "00"), "without a DEK"),
        (("f", "g", "--table", "t", "--decrypt-to", "h"), "is for one file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 64
        assert says in result.stderr


def test_several_files(tmp_path: Path, pare: Path) -> None:
    plain, broken = tmp_path / "plain", tmp_path / "broken"
    plain.write_bytes(b"PAR1")
    broken.write_bytes(b"AGS1")
    assert run(pare, plain, AGS1).exit_code == 0
    assert run("--expect-encrypted", pare, AGS1).exit_code == 0
    assert run(pare, tmp_path / "none").exit_code == 2
    assert run(tmp_path / "none", broken, pare).exit_code == 1
    result = run("--expect-encrypted", "--output", "json", pare, plain, broken, tmp_path / "none")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [one.get("magic") for one in found] == ["PARE", "PAR1", None, None]
    assert [one.get("unchecked") for one in found] == [None, False, False, True]
    assert "starts with PAR1" in found[1]["problem"]
    assert all(one["hint"] for one in found[1:])
    assert isinstance(json.loads(run("--output", "json", plain).stdout), dict)


def test_the_command_needs_no_java(pare: Path) -> None:
    """In a process of its own, where any start of a JVM would fail."""
    code = "import sys; from pyspark_iceberg_crypto.cli import main; main(sys.argv[1:])"
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    ran = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(pare)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "AES_GCM_V1" in ran.stdout


def test_names_of_strangers_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m[red]"
    path.write_bytes(b"AGS1")
    result = run(path)
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    path.write_bytes(b"PAR1")
    assert "\x1b" not in run("--expect-encrypted", path).stdout


def test_keys_go_to_the_jvm_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    answer = {"path": "f", "length": 1, "magic": "AGS1", "format": "x", "encrypted": True}

    def call(*arguments: Any) -> str:
        asked.append(arguments[1:])
        told = {"tags_checked": True, "length_checked": False, "decrypted_to": arguments[-1]}
        return json.dumps({**answer, **told})

    monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.call", call)
    monkeypatch.setattr(_session, "session", _inspect.contextmanager(lambda *_: iter(["spark"])))
    result = run("f", "--key-env", "DEK", "--aad-prefix", "a0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "every tag matches its key; it cannot be known whether" in " ".join(
        result.stdout.split()
    )
    assert asked == [("checkFile", "f", None, "DEK", "a0", None)]
    asked.clear()
    result = run("f", "--table", "lake.db.t", "--decrypt-to", "/nowhere/out")
    assert asked == [("checkFileOfTable", "f", "lake.db.t", "/nowhere/out")]
    assert result.stderr == "warning: /nowhere/out is not encrypted: delete it when you are done\n"
