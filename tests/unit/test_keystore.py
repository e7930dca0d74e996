"""Keystore.create runs the JDK's keytool for real."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_iceberg_crypto import AccessDeniedError, ConfigurationError, Keystore, _keytool

SECRET = "correct horse battery"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_PASSWORD", SECRET)


def listed(path: Path) -> str:
    """What keytool says of a keystore, asked in another way than Keystore.keys does."""
    command = ["keytool", "-list", "-v", "-keystore", str(path), "-storepass", SECRET]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_create_makes_a_private_pkcs12_file_with_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "with a blank.p12"
    store = Keystore.create(path, keys=["Orders", "flights-2013"], password_env="STORE_PASSWORD")
    assert store == Keystore(path, password_env="STORE_PASSWORD")
    assert store.keys() == ["flights-2013", "orders"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Keystore type: PKCS12" in listed(path)
    assert list(tmp_path.iterdir()) == [path], "nothing but the keystore is left"


@pytest.mark.parametrize("bits", [128, 192])
def test_a_password_file_and_a_key_size(tmp_path: Path, bits: int) -> None:
    secret = tmp_path / "password"
    secret.write_text(SECRET + "\n")
    store = Keystore.create(tmp_path / "k.p12", ["k1"], password_file=secret, key_bits=bits)
    assert store.keys() == ["k1"]
    assert store.properties() == {
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(tmp_path / "k.p12"),
        "encryption.kms.keystore.password-file": str(secret),
    }


def test_the_password_is_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    run = subprocess.run

    def spy(command: list[str], **kwargs: Any) -> Any:
        seen.append(command)
        return run(command, **kwargs)

    monkeypatch.setattr(_keytool.subprocess, "run", spy)
    Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD").keys()
    assert len(seen) == 2
    assert not any(SECRET in word for command in seen for word in command)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = Keystore("k.p12", password_file="p").properties()
    assert found["encryption.kms.keystore.path"] == str(tmp_path / "k.p12")
    assert found["encryption.kms.keystore.password-file"] == str(tmp_path / "p")


def test_a_keystore_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "k.p12"
    path.write_bytes(b"precious")
    with pytest.raises(ConfigurationError, match="exists already"):
        Keystore.create(path, ["k1"], password_env="STORE_PASSWORD")
    assert path.read_bytes() == b"precious"


def test_a_keystore_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k.p12"

    def generate(store: Path, *_: object) -> None:
        store.write_bytes(b"ours")
        path.write_bytes(b"precious")

    monkeypatch.setattr(_keytool, "generate", generate)
    with pytest.raises(ConfigurationError, match="exists already"):
        Keystore.create(path, ["k1"], password_env="STORE_PASSWORD")
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = _keytool.generate

    def fail_on_second(store: Path, name: str, *rest: Any) -> None:
        if name == "k2":
            raise ConfigurationError("keytool refused: disk full")
        generate(store, name, *rest)

    monkeypatch.setattr(_keytool, "generate", fail_on_second)
    with pytest.raises(ConfigurationError, match="disk full"):
        Keystore.create(tmp_path / "k.p12", ["k1", "k2"], password_env="STORE_PASSWORD")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"keys": []}, "must be a list of names"),
        ({"keys": "k1"}, "must be a list of names"),
        ({"keys": ["k1", ""]}, "'' cannot be a key's name"),
        ({"keys": [" k1"]}, "' k1' cannot be"),
        ({"keys": ["Orders", "orders"]}, "'Orders' and 'orders' are one name"),
        ({"key_bits": 512}, "512 bits"),
        ({"password_env": None}, "one of password_env and password_file"),
        ({"password_file": "p"}, "one of password_env and password_file"),
        ({"password_env": "NOT_SET"}, "environment variable NOT_SET is not set or empty"),
        ({"password_env": "SHORT"}, "environment variable SHORT, is too short"),
        ({"password_env": None, "password_file": "/no/such"}, "cannot be read from the file"),
        ({"path": "/no/such/folder/k.p12"}, "there is no folder"),
        ({"path": ""}, "path is empty"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "12345")
    good = {"path": tmp_path / "k.p12", "keys": ["k1"], "password_env": "STORE_PASSWORD"}
    with pytest.raises(ConfigurationError) as caught:
        Keystore.create(**{**good, **arguments})
    assert says in caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_password_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    monkeypatch.setenv("STORE_PASSWORD", "another one")
    with pytest.raises(AccessDeniedError, match="password is wrong") as caught:
        store.keys()
    assert "STORE_PASSWORD" in caught.value.hint


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.write_bytes(b"junk" * 99)])
def test_listing_what_is_no_keystore(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / "k.p12")
    with pytest.raises(ConfigurationError):
        Keystore(tmp_path / "k.p12", password_env="STORE_PASSWORD").keys()


def test_no_keytool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match="no keytool"):
        Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_check_tries_each_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr("pyspark_iceberg_crypto.kms._jvm.call", lambda *args: calls.append(args))
    store = Keystore.create(tmp_path / "k.p12", ["k1", "k2"], password_env="STORE_PASSWORD")
    store.check("spark", catalog="lake")  # type: ignore[arg-type]
    store.check("spark", key_id="k9")  # type: ignore[arg-type]
    assert [call[1:] for call in calls] == [
        ("checkKey", "lake", "k1"),
        ("checkKey", "lake", "k2"),
        ("checkKey", "lake", "k9"),
    ]
