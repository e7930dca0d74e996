"""`verify`, `inspect` and `report check` in Python alone: the functions, and the command line without Spark."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness.files import secret_file
from pyiceberg.catalog import load_catalog

from pyspark_iceberg_crypto import cli
from pyspark_iceberg_crypto.cli import _profile, _python_alone
from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    NotSupportedError,
    PlaintextFoundError,
    TamperedError,
)
from pyspark_iceberg_crypto.kms import CachedKms, from_properties
from pyspark_iceberg_crypto.reader import (
    check_report,
    decrypt_file,
    inspect_file,
    open_table,
    sign_report,
    verify_table,
)
from pyspark_iceberg_crypto.reader.proof import _opened
from pyspark_iceberg_crypto.verbs.inspection import FileKey
from reader.golden import KINDS, Golden, shared_client
from reader.parquet_files import KEY, PREFIX, parquet

Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(properties: Mapping[str, str]) -> CachedKms:
        path = properties.get("encryption.kms.keystore.path")
        return from_properties(properties) if path is None else shared_client()

    monkeypatch.setattr(_opened, "from_properties", made)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Golden]:
    folder = tmp_path_factory.mktemp("golden")
    return {kind: Golden.unpacked(kind, folder / kind) for kind in KINDS}


@pytest.fixture
def golden(tables: dict[str, Golden]) -> Golden:
    return tables["jdbc"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command with a catalog of a golden table."""
    monkeypatch.setenv(_profile.CONFIG, str(tmp_path / "profile.yaml"))

    def run(golden: Golden, *arguments: str) -> Result:
        conf = "\n".join(f"    {name}: {value}" for name, value in golden.conf.items())
        secret_file(tmp_path / "profile.yaml", f"catalogs:\n  {golden.name}:\n{conf}\n")
        return CliRunner().invoke(cli.main, [*arguments, "--without-spark"])

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_verify(tables: dict[str, Golden], kind: str, command: Command) -> None:
    golden = tables[kind]
    table = f"{golden.name}.db.t"
    done = command(golden, "verify", table, "--deep", "--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["ok"], told["table"], told["depth"]) == (True, table, "deep")
    assert (told["file_count"], told["metadata_authenticated"]) == (15, True)
    path = golden.local(golden.one("data").path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    try:
        done = command(golden, "verify", table, "--structure")
    finally:
        path.write_bytes(whole)
    assert (done.exit_code, "it was cut off" in done.output) == (1, True), done.output


def test_verify_by_functions(golden: Golden) -> None:
    conf = {name: value for name, value in golden.conf.items() if not name.startswith("encryption")}
    of_sql = {"uri": f"sqlite:///{golden.folder}/jdbc.db", "type": "sql"}
    catalog = load_catalog(golden.name, **{**conf, **of_sql})
    report = verify_table(catalog, "db.t", properties=golden.properties, all_snapshots=True)
    assert (report.ok, report.table, report.file_count) == (True, f"{golden.name}.db.t", 26)
    assert verify_table(catalog, "db.t", kms=golden.client, name="lake.db.t").table == "lake.db.t"
    metadata = verify_table(golden.location, properties=golden.conf)
    assert (metadata.ok, metadata.metadata_location) == (True, golden.location)
    with pytest.raises(ConfigurationError, match="[Nn]o KMS"):
        verify_table(catalog, "db.t")
    with pytest.raises(AccessDeniedError, match="allows only other"):
        allowed = {**golden.properties, "encryption.allowed-key-ids": "other"}
        verify_table(catalog, "db.t", properties=allowed)


def test_a_plaintext_table(golden: Golden) -> None:
    """db.v has encrypted values in plaintext files."""
    catalog = load_catalog(
        golden.name,
        **{**golden.conf, "type": "sql", "uri": f"sqlite:///{golden.folder}/jdbc.db"},
    )
    assert open_table(catalog, "db.v").name() == ("db", "v")
    report = verify_table(catalog, "db.v")
    assert (report.exit_code, report.key_id, report.kms) == (1, None, None)
    assert {one.code for one in report.problems} == {"plaintext"}
    assert report.problems[0].kind == "table"
    assert {one.kind for one in report.problems} >= {"data", "manifest", "manifest list"}


def test_whole_catalogs(tables: dict[str, Golden], command: Command) -> None:
    golden = tables["jdbc"]
    done = command(golden, "verify", golden.name, "--output", "json")
    told = json.loads(done.stdout)
    named = {one["table"]: one["ok"] for one in told["reports"]}
    assert (done.exit_code, named[f"{golden.name}.db.t"]) == (1, True)
    assert (named[f"{golden.name}.db.v"], told["not_checked"]) == (False, [])
    hadoop = tables["hadoop"]
    done = command(hadoop, "verify", f"{hadoop.name}.db.*", "--output", "json")
    assert (done.exit_code, json.loads(done.stdout)["reports"]) == (2, [])
    assert "cannot be listed without Spark" in json.loads(done.stdout)["not_checked"][0]["problem"]


@pytest.mark.parametrize(
    "more",
    [
        ("--sample", "0.5"),
        ("--strays",),
        ("--resume", "/f"),
        ("--since", "report.json"),
        ("--since-key-id", "k"),
        ("--recheck", "0.5"),
        ("--folder",),
        ("--except", "lake.a.b"),
        ("--conf", "a=b"),
    ],
)
def test_what_needs_spark_is_refused(golden: Golden, command: Command, more: tuple[str]) -> None:
    done = command(golden, "verify", f"{golden.name}.db.t", *more)
    assert done.exit_code == 64, done.output
    assert more[0] in done.output


def test_a_wrong_name_is_told_before_the_first_table_is_verified(
    golden: Golden, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[str] = []
    monkeypatch.setattr(_python_alone, "_one", lambda name, *_: verified.append(name))
    done = command(golden, "verify", f"{golden.name}.db.t", f"{golden.name}.db", "--deep")
    assert done.exit_code == 64, done.output
    assert f"{golden.name}.db is not the full name of a table" in done.output and not verified


def test_names(golden: Golden, command: Command) -> None:
    assert command(golden, "verify", "db.t").exit_code == 64
    done = command(golden, "verify", "other.db.t")
    assert (done.exit_code, "There is no catalog 'other'" in done.output) == (2, True)
    done = command(golden, "verify", f"{golden.name}.db.t", "--catalog-conf", "type=nessie")
    assert (done.exit_code, "is of type nessie" in done.output) == (2, True)


@pytest.mark.nightly
def test_signed_reports(golden: Golden, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    table = f"{golden.name}.db.t"
    done = command(golden, "verify", table, "--sign-with", "k1", "--json-file", str(file))
    assert done.exit_code == 0, done.output
    of = ("report", "check", str(file), "--catalog", golden.name)
    done = command(golden, *of, "--html", str(tmp_path / "page.html"))
    assert (done.exit_code, "genuine: signed with master key 'k1'" in done.output) == (0, True)
    assert "Signature genuine." in (tmp_path / "page.html").read_text()
    assert command(golden, *of, "--key-id", "k2").exit_code == 1
    signed = json.loads(file.read_text())
    signature = signed["signature"]
    for changes in (
        {"ok": False},
        {"signature": {**signature, "signed_at": "2020-01-01T00:00:00Z"}},
        {"signature": {**signature, "more": "x"}},
        {"signature": {**signature, "mac": "é"}},
        {"signature": {**signature, "wrapped_key": "?"}},
        {"signature": {**signature, "wrapped_key": signature["wrapped_key"][::-1]}},
    ):
        file.write_text(json.dumps({**signed, **changes}))
        done = command(golden, *of)
        assert (done.exit_code, "not genuine" in done.output) == (1, True), changes
    file.write_text(json.dumps({**signed, "signature": None}))
    assert command(golden, *of).exit_code == 2


def test_signatures_by_functions(golden: Golden, tmp_path: Path) -> None:
    report = golden.verify("magic")
    signed = sign_report(report, "k1", kms=golden.client)
    file = tmp_path / "report.json"
    file.write_text(signed.to_json())
    assert check_report(file, kms=golden.client) == signed
    denied = {"encryption.Allowed-Key-Ids": "other"}  # names have no case
    with pytest.raises(AccessDeniedError, match="not signed with master key 'k1'"):
        sign_report(report, "k1", kms=golden.client, properties=denied)
    with pytest.raises(AccessDeniedError, match="allows only other"):
        check_report(file, kms=golden.client, properties=denied)
    assert check_report(file, "k1", kms=golden.client, properties=denied).ok, "it is named"
    with pytest.raises(ConfigurationError, match="KMS is configured"):
        check_report(file)
    told = json.loads(signed.to_json())
    told["signature"]["algorithm"] = "HMAC-SHA-512"
    file.write_text(json.dumps(told))
    with pytest.raises(NotSupportedError, match="signed with 'HMAC-SHA-512'"):
        check_report(file, kms=golden.client)

    class Own:
        answer: IcebergCryptoError = AccessDeniedError("only wraps", "")
        other = b""

        def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
            other, self.other = self.other, b""
            return other or key

        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            if wrapped_key == b"other":
                return wrapped_key
            raise self.answer

    with pytest.raises(ConfigurationError, match="would prove nothing"):
        sign_report(report, "k1", kms=Own())
    own = Own()
    own.other = b"other"
    trusted = CachedKms(own, authenticated_wrapping=True)
    with pytest.raises(BadWrappedKeyError, match="unwraps other bytes than it wrapped under key"):
        sign_report(report, "k1", kms=trusted)
    file.write_text(sign_report(report, "k1", kms=trusted).to_json())
    own.answer = TamperedError("not mine", "")
    with pytest.raises(BadWrappedKeyError, match="unwraps other bytes than it wrapped under key"):
        sign_report(report, "k1", kms=trusted)
    with pytest.raises(BadWrappedKeyError, match="or this is another KMS: not mine"):
        check_report(file, kms=trusted)


def test_inspect(golden: Golden, command: Command, tmp_path: Path) -> None:
    table = f"{golden.name}.db.t"
    for kind in ("data", "manifest", "manifest list", "statistics", "deletion vector"):
        path = golden.one(kind).path
        done = command(golden, "inspect", path, "--table", table, "--output", "json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["magic"], told["tags_checked"], told["length_checked"]) == ("AGS1", True, True)
        local = golden.local(path)
        whole = local.read_bytes()
        local.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        try:
            done = command(golden, "inspect", path, "--table", table)
        finally:
            local.write_bytes(whole)
        assert (done.exit_code, "block 0 of 1 fails" in done.output) == (1, True), done.output
        assert json.loads(command(golden, "inspect", str(local), "--output", "json").stdout)
    target = tmp_path / "plain.avro"
    path = golden.one("data").path
    done = command(golden, "inspect", path, "--table", table, "--decrypt-to", str(target))
    assert (done.exit_code, "delete it when you are done" in done.output) == (0, True)
    assert (target.read_bytes()[:4], oct(target.stat().st_mode)[-3:]) == (b"Obj\x01", "600")
    done = command(golden, "inspect", path, "--table", table, "--decrypt-to", str(target))
    assert (done.exit_code, "exists, and is not overwritten" in done.output) == (2, True)
    done = command(golden, "inspect", "viewfs://golden-x/nothing", "--table", table)
    assert (done.exit_code, "no snapshot of it reaches" in done.output) == (2, True)
    assert command(golden, "inspect", path, "--pages").exit_code == 64


def test_files_with_a_key_of_their_own(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, file = parquet(), tmp_path / "f.parquet"
    file.write_bytes(made.data)
    monkeypatch.setenv("DEK", KEY.hex())
    key = FileKey(env="DEK", aad_prefix=PREFIX.hex())
    found = inspect_file(file, key=key)
    assert (found.magic, found.tags_checked, found.length_checked) == ("PARE", True, False)
    with pytest.raises(NotSupportedError, match="not decrypted into a file"):
        decrypt_file(file, tmp_path / "plain", key=key)
    file.write_bytes(made.flipped(50).data)
    with pytest.raises(TamperedError, match="is not what was written: .* fails authentication"):
        inspect_file(file, key=key)
    file.write_bytes(b"PAR1")
    with pytest.raises(PlaintextFoundError, match="it is not encrypted: it starts with PAR1"):
        inspect_file(file, key=key)
    monkeypatch.setenv("DEK", "00")
    with pytest.raises(ConfigurationError, match="The DEK is not in hex, or not of 16, 24 or 32"):
        inspect_file(file, key=key)
    monkeypatch.setenv("DEK", "secret!")
    with pytest.raises(ConfigurationError, match="The DEK is not in hex") as raised:
        inspect_file(file, key=key)
    assert "secret!" not in str(raised.value)
    assert raised.value.__cause__ is None
    with pytest.raises(ConfigurationError, match="both a table and a key"):
        inspect_file(file, golden.location, key=key)
    with pytest.raises(ConfigurationError, match="needs a table or a key"):
        inspect_file(file, decrypt_to=tmp_path / "plain")
    with pytest.raises(IcebergCryptoError):
        inspect_file(tmp_path / "nothing", key=key)


def test_a_file_in_a_storage_without_a_key(golden: Golden) -> None:
    path = golden.one("data").path
    found = inspect_file(path, properties=golden.conf)
    assert (found.magic, found.block_count, found.tags_checked) == ("AGS1", 1, None)
    with pytest.raises(IcebergCryptoError, match="could not be checked"):
        inspect_file(f"{path}.gone", properties=golden.conf)


def test_decrypt_file_leaves_nothing_behind(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "plain.avro"
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ConfigurationError, match="could not be written"):
        decrypt_file(golden.one("data").path, target, golden.location, properties=golden.conf)
    assert not target.exists()
