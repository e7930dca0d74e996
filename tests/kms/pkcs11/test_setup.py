"""Pkcs11's set-up helpers, which run OpenSC's pkcs11-tool on SoftHSM2."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.faulty_hsm import FaultyHsm
from harness.files import secret_file
from harness.jvm import Jvm, start_jvm
from servers.softhsm import PIN, SoftHsm

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
    Pkcs11,
)
from pyspark_iceberg_crypto.kms.pkcs11 import _tool as _pkcs11_tool

TOKENS = ("a token", "more", "stocked")


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    made = SoftHsm(tmp_path_factory.mktemp("softhsm") / "softhsm2.conf")
    for token in TOKENS:
        made.make_token(token)
    for label in ("k1", "k1.v2", "k1.v10", "k1.v02", "k2"):
        made.make_key("stocked", label)
    made.make_key("stocked", "readable", "--extractable", kind="AES:16")
    made.make_key("stocked", "mac", kind="GENERIC:32")
    return made


@pytest.fixture(autouse=True)
def environment(hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTHSM2_CONF", str(hsm.configuration))
    monkeypatch.setenv("TOKEN_PIN", PIN)
    monkeypatch.setenv("WRONG_PIN", "999999")


@pytest.fixture(scope="module")
def own_jvm(hsm: SoftHsm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """A JVM that sees these tokens."""
    log = tmp_path_factory.mktemp("jvm") / "log"
    started = start_jvm(log, {"SOFTHSM2_CONF": str(hsm.configuration), "TOKEN_PIN": PIN})
    yield started
    started.stop()


def token(hsm: SoftHsm, label: str, **changes: Any) -> Pkcs11:
    return Pkcs11(
        **{"library": hsm.library, "token_label": label, "pin_env": "TOKEN_PIN", **changes}
    )


def test_a_new_key_wraps_and_rotates(hsm: SoftHsm, own_jvm: Jvm) -> None:
    kms = token(hsm, "a token")
    made = kms.create_key("sales")
    assert (made.key_id, made.state, made.algorithm) == ("sales", "enabled", "AES-256")
    assert (made.version, made.versions) == ("1", 1)
    assert made.detail["access"] == "sensitive, always sensitive, never extractable, local"
    client = own_jvm.client(kms.properties(), raw=True)
    first = client.wrap(b"0123456789abcdef", "sales")
    rotated = kms.rotate_key("sales", key_bits=128)
    assert (rotated.version, rotated.versions, rotated.algorithm) == ("2", 2, "AES-128")
    assert rotated.detail["label"] == "sales.v2"
    assert client.unwrap(first, "sales") == b"0123456789abcdef"
    with pytest.raises(KeyNotFoundError):  # looks at the token again, and so sees the new version
        client.wrap(b"0123456789abcdef", "nope")
    second = client.wrap(b"0123456789abcdef", "sales")
    assert second[:16] == b"ICWK\x01\x06pkcs11\x00\x00\x00\x02"
    assert client.unwrap(second, "sales") == b"0123456789abcdef"


def test_a_key_needs_the_login(hsm: SoftHsm) -> None:
    token(hsm, "more").create_key("hidden")
    command = ["pkcs11-tool", "--module", str(hsm.library), "--token-label", "more"]
    shown = subprocess.run([*command, "--list-objects"], capture_output=True, text=True, check=True)
    assert "hidden" not in shown.stdout
    assert "hidden" in hsm.tool("more", "--list-objects")


def test_list_and_describe(hsm: SoftHsm) -> None:
    kms = token(hsm, "stocked")
    keys = {key.key_id: (key.version, key.versions, key.algorithm) for key in kms.list_keys()}
    assert keys == {
        "k1": ("10", 3, "AES-256"),
        "k1.v02": ("1", 1, "AES-256"),  # not how a version is called
        "k2": ("1", 1, "AES-256"),
        "readable": ("1", 1, "AES-128"),
    }
    assert "extractable" in kms.describe_key("readable").detail["access"]
    states = {key.key_id: key.state for key in kms.list_keys()}
    assert states.pop("readable") == "can be extracted"
    assert set(states.values()) == {"enabled"}
    by_slot = token(hsm, "x", token_label=None, slot=hex(hsm.slots["stocked"]))
    assert {key.key_id for key in by_slot.list_keys()} == set(keys)


def test_a_sensitive_key_that_can_be_extracted_is_told(hsm: SoftHsm) -> None:
    """Java cannot see it: the token keeps its value, and yet lets it be wrapped and taken away."""
    hsm.make_key("more", "loose", "--sensitive", "--private", "--extractable")
    found = token(hsm, "more").describe_key("loose")
    assert found.detail["access"].startswith("sensitive")
    assert found.state == "can be extracted"
    hsm.tool("more", "--delete-object", "--type", "secrkey", "--label", "loose")


def test_the_value_of_a_readable_key_is_not_told(hsm: SoftHsm) -> None:
    shown = hsm.tool("stocked", "--list-objects", "--type", "secrkey")
    (value,) = (line.split()[1] for line in shown.splitlines() if "VALUE" in line)
    assert value not in repr(token(hsm, "stocked").list_keys())


def test_a_key_is_never_overwritten_or_doubled(hsm: SoftHsm) -> None:
    with pytest.raises(ConfigurationError, match="already has a key 'k1'") as caught:
        token(hsm, "stocked").create_key("k1")
    assert "rotate_key" in caught.value.hint
    assert hsm.tool("stocked", "--list-objects").count("label:      k1\n") == 1


def test_a_key_made_at_the_same_time_stays_the_only_one(
    hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = _pkcs11_tool.Token.generate

    def race(self: _pkcs11_tool.Token, label: str, bits: int, key_id: str) -> None:
        hsm.make_key("more", label)
        generate(self, label, bits, key_id)

    monkeypatch.setattr(_pkcs11_tool.Token, "generate", race)
    with pytest.raises(ConfigurationError, match="created at the same time"):
        token(hsm, "more").create_key("raced")
    assert hsm.tool("more", "--list-objects").count("label:      raced\n") == 1


@pytest.mark.parametrize("method", ["describe_key", "rotate_key"])
def test_a_missing_key_is_named_beside_those_there_are(hsm: SoftHsm, method: str) -> None:
    with pytest.raises(KeyNotFoundError, match="token 'stocked'.* no key 'nope'") as caught:
        getattr(token(hsm, "stocked"), method)("nope")
    assert "k1, k1.v02, k2" in caught.value.hint


def test_bad_sizes(hsm: SoftHsm) -> None:
    with pytest.raises(ConfigurationError, match="512 bits"):
        token(hsm, "stocked").create_key("big", key_bits=512)


def test_a_pin_file(hsm: SoftHsm, tmp_path: Path) -> None:
    file = secret_file(tmp_path / "pin", PIN + "\n")
    kms = token(hsm, "stocked", pin_env=None, pin_file=file)
    assert kms.describe_key("k2").key_id == "k2"
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="open to others"):
        kms.list_keys()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_the_pin_is_on_no_command_line_and_in_no_error(
    hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    run = subprocess.run

    def spy(command: list[str], **kwargs: Any) -> Any:
        seen.append(command)
        return run(command, **kwargs)

    monkeypatch.setattr(_pkcs11_tool.subprocess, "run", spy)
    token(hsm, "stocked").list_keys()
    with pytest.raises(LoginFailedError) as caught:
        token(hsm, "stocked", pin_env="WRONG_PIN").list_keys()
    assert len(seen) == 2
    assert not any(pin in word for command in seen for word in command for pin in (PIN, "999999"))
    assert "999999" not in f"{caught.value}{caught.value.__cause__}"


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({"pin_env": "WRONG_PIN"}, LoginFailedError, "the pin is wrong"),
        ({"pin_env": "NOT_SET"}, ConfigurationError, "NOT_SET is not set or empty"),
        ({"pin_env": None, "pin_file": "/no/pin"}, ConfigurationError, "cannot be read"),
        ({"token_label": "nope"}, ConfigurationError, "no PKCS#11 token 'nope'"),
        ({"token_label": None, "slot": 4711}, ConfigurationError, "no such slot"),
        ({"library": "/no/such.so"}, ConfigurationError, "/no/such.so cannot be loaded"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(
    hsm: SoftHsm, changes: dict[str, Any], kind: type[IcebergCryptoError], says: str
) -> None:
    with pytest.raises(IcebergCryptoError) as caught:
        token(hsm, "stocked", **changes).list_keys()
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ("login 0xa4", LoginFailedError, "locked"),
        ("login 0x30", KmsUnavailableError, "CKR_DEVICE_ERROR"),
        ("answer 0xe0", KmsUnavailableError, "CKR_TOKEN_NOT_PRESENT"),
        ("answer 0x70", NotSupportedError, "CKR_MECHANISM_INVALID"),
    ],
)
def test_faults(
    hsm: SoftHsm, tmp_path: Path, answer: str, kind: type[IcebergCryptoError], says: str
) -> None:
    faulty = FaultyHsm(tmp_path, hsm.library)
    faulty.set(answer)
    with pytest.raises(IcebergCryptoError) as caught:
        token(hsm, "stocked", library=faulty.library).list_keys()
    assert type(caught.value) is kind
    assert says in caught.value.message


def test_an_hsm_that_hangs(hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = FaultyHsm(tmp_path, hsm.library)
    faulty.set("slow 5000")
    monkeypatch.setattr(_pkcs11_tool, "TIMEOUT_SECONDS", 0.5)
    with pytest.raises(KmsUnavailableError, match="did not answer") as caught:
        token(hsm, "stocked", library=faulty.library).list_keys()
    assert PIN not in f"{caught.value}{caught.value.__cause__}"


def test_no_pkcs11_tool(hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="no program pkcs11-tool") as caught:
        token(hsm, "stocked").list_keys()
    assert "opensc" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"library": ""}, "path is empty"),
        ({"token_label": None}, "one of token_label and slot"),
        ({"token_label": ""}, "one of token_label and slot"),
        ({"slot": 1}, "one of token_label and slot"),
        ({"token_label": None, "slot": "first"}, "'first' is not a slot's id"),
        ({"token_label": None, "slot": -1}, "-1 is not a slot's id"),
        ({"token_label": None, "slot": True}, "True is not a slot's id"),
        ({"pin_env": None}, "one of pin_env and pin_file"),
        ({"pin_file": "p"}, "one of pin_env and pin_file"),
    ],
    ids=str,
)
def test_bad_arguments(hsm: SoftHsm, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        token(hsm, "stocked", **changes)
    assert says in caught.value.message


def test_properties(hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = "encryption.kms.pkcs11"
    assert token(hsm, "a token").properties() == {
        "encryption.kms-type": "pkcs11",
        f"{prefix}.library": str(hsm.library),
        f"{prefix}.token-label": "a token",
        f"{prefix}.pin-env": "TOKEN_PIN",
    }
    monkeypatch.chdir(tmp_path)
    assert Pkcs11("lib.so", slot="0x10", pin_file="pin").properties() == {
        "encryption.kms-type": "pkcs11",
        f"{prefix}.library": str(tmp_path / "lib.so"),
        f"{prefix}.slot": "16",
        f"{prefix}.pin-file": str(tmp_path / "pin"),
    }


def test_the_policy_names_what_the_token_must_be(hsm: SoftHsm, tmp_path: Path) -> None:
    policy = token(hsm, "a token").driver_policy(["sales", "hr"])
    assert policy.startswith("# ")
    for word in (
        "sales, hr",
        "CKM_AES_GCM",
        "CKA_EXTRACTABLE",
        "--token-label 'a token'",
        "TOKEN_PIN",
    ):
        assert word in policy
    by_file = token(hsm, "a token", pin_env=None, pin_file=tmp_path / "pin").driver_policy(["k"])
    assert f"chmod 400 {tmp_path / 'pin'}" in by_file
    assert PIN not in policy + by_file
    # What it tells to run runs, apart from the login, which asks for the pin.
    (command,) = (line for line in policy.splitlines() if line.startswith("pkcs11-tool"))
    done = subprocess.run(
        ["bash", "-c", f"{command} --pin env:TOKEN_PIN"], capture_output=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr.decode()
