"""Keystore.create runs the JDK's keytool for real."""

import datetime
import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.files import secret_file
from harness.jars import ROOT
from harness.keystore import few_iterations

from pyspark_iceberg_crypto import (
    ConfigurationError,
    KeyNotFoundError,
    Keystore,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms.keystore import _atomic, _keytool, _pkcs12

SECRET = "correct horse battery"
LONG = "a password of a program, 32 bytes of it or more. " * 100 + "~"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """And few iterations, but in the test that counts them: 600,000 take seconds."""
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    few_iterations(monkeypatch)


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


@pytest.mark.nightly
def test_guesses_of_the_password_are_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says how often it hashes: 600,000 for each key (PBKDF2), twice that for its MAC."""
    monkeypatch.undo()
    monkeypatch.setenv("STORE_PASSWORD", LONG)
    store = Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    store.rotate_key("k1")
    assert iterations(tmp_path / "k.p12") == [600_000, 600_000, 1_200_000]


def iterations(path: Path) -> list[int]:
    """The numbers of three bytes in a file, sorted (DER, INTEGER); random bytes may look like one, too."""
    content = path.read_bytes()
    integers = [
        content[i + 2 : i + 5] for i in range(len(content)) if content[i : i + 2] == b"\x02\x03"
    ]
    found = (int.from_bytes(number, "big") for number in integers)
    return sorted(number for number in found if number % 100_000 == 0)


def keytool_commands() -> list[str]:
    """What pages and the hint of Python's reader say to do with keytool."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    blocks = [
        re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(), re.M | re.S) for page in pages
    ]
    hint = _pkcs12._unknown("x", "a key", "x").hint.partition(": ")[2]
    hint = hint.replace("OLD", "keys.p12").replace("NEW", "new.p12")
    return [block for page in blocks for block in page if "keytool -" in block] + [hint]


@pytest.mark.nightly
@pytest.mark.parametrize("command", keytool_commands(), ids=lambda command: command[:30])
def test_keytool_by_hand(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A weak file becomes a strong one, or a new one is: guesses are slow, and it is its owner's alone."""
    monkeypatch.undo()
    for name in re.findall(r"pass:env (\w+)", command):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    deletes = "-delete" in command
    old = tmp_path / ("tables.p12" if deletes else "keys.p12")
    if deletes:
        Keystore.create(old, ["sales"], password_env="STORE_PASSWORD").create_key("hr")
    elif "-genseckey" not in command:
        make = ["keytool", "-genseckey", "-alias", "sales", "-keyalg", "AES", "-keysize", "256"]
        make += ["-storetype", "PKCS12", "-keystore", str(old), "-storepass", SECRET]
        subprocess.run(make, check=True, capture_output=True)
        assert iterations(old) == []
    script = re.sub("^iceberg-crypto .*", "", command, flags=re.M)
    done = subprocess.run(
        script, shell=True, cwd=tmp_path, umask=0o022, check=True, capture_output=True, text=True
    )
    assert done.stdout.count("sales, ") == command.count("keytool -list"), "what is to be compared"
    new = tmp_path / "new.p12"
    made = new if new.exists() else old
    assert made.stat().st_mode & 0o777 == 0o600
    assert iterations(made) == [600_000, 1_200_000]
    assert Keystore(made, password_env="STORE_PASSWORD").keys() == ["hr" if deletes else "sales"]


@pytest.mark.parametrize("secret", ["pässwörter", "tabs\tin it", "\N{KEY}" * 8])
def test_a_password_that_java_does_not_take_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", secret)
    with pytest.raises(ConfigurationError, match="characters that no PKCS12 keystore") as caught:
        Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    assert secret not in str(caught.value)
    assert "ASCII" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", ["# of the lake\n", "\n \nx", "\r\nx"])
def test_a_password_file_of_more_than_one_line_is_refused(tmp_path: Path, more: str) -> None:
    """Spark's side would take all of it."""
    secret = secret_file(tmp_path / "password", f"{SECRET}\n{more}")
    with pytest.raises(ConfigurationError, match="more than one line") as caught:
        Keystore.create(tmp_path / "k.p12", ["k1"], password_file=secret)
    assert str(secret) in caught.value.message
    assert SECRET not in str(caught.value)
    assert not (tmp_path / "k.p12").exists()


@pytest.mark.parametrize("bits", [128, pytest.param(192, marks=pytest.mark.nightly)])
def test_a_password_file_and_a_key_size(tmp_path: Path, bits: int) -> None:
    secret = secret_file(tmp_path / "password", SECRET + "\n")
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
    with pytest.raises(ConfigurationError, match="already exists"):
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
    with pytest.raises(ConfigurationError, match="already exists"):
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
        ({"keys": [7]}, "7 cannot be a key's name"),
        ({"keys": ["Orders", "orders"]}, "'Orders' and 'orders' are the same name"),
        ({"keys": ["k1.v2"]}, "the name of version 2 of key 'k1'"),
        ({"keys": ["Orders.V2"]}, "the name of version 2 of key 'orders'"),
        ({"keys": ["k\n1"]}, "cannot be a key's name"),
        ({"key_bits": 512}, "512 bits"),
        ({"password_env": None}, "one of password_env and password_file"),
        ({"password_file": "p"}, "one of password_env and password_file"),
        ({"password_env": "NOT_SET"}, "environment variable NOT_SET is not set or empty"),
        ({"password_env": "SHORT"}, "environment variable SHORT, is too short"),
        ({"password_env": "BLANKS"}, "environment variable BLANKS, has leading or trailing spaces"),
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
    monkeypatch.setenv("BLANKS", " " + SECRET)
    good = {"path": tmp_path / "k.p12", "keys": ["k1"], "password_env": "STORE_PASSWORD"}
    with pytest.raises(ConfigurationError) as caught:
        Keystore.create(**{**good, **arguments})
    assert says in caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_password_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    monkeypatch.setenv("STORE_PASSWORD", "another one")
    with pytest.raises(LoginFailedError, match="password is wrong") as caught:
        store.keys()
    assert "STORE_PASSWORD" in caught.value.hint


def junk(path: Path) -> None:
    secret_file(path, b"junk" * 99)


@pytest.mark.parametrize("make", [lambda path: None, junk])
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


def test_a_keytool_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "keytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(_keytool, "TIMEOUT", 0.1)
    with pytest.raises(KmsUnavailableError, match=r"keytool did not end within 0\.1 s") as caught:
        Keystore.create(tmp_path / "k.p12", ["k1"], password_env="STORE_PASSWORD")
    assert "try again" in caught.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore with k1 and k2: each run of keytool takes a second, so it is made once."""
    path = tmp_path_factory.mktemp("keystore") / "k.p12"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORE_PASSWORD", SECRET)
        few_iterations(patch)
        Keystore.create(path, ["k1", "k2"], password_env="STORE_PASSWORD")
    return path


@pytest.fixture
def store(tmp_path: Path, finished: Path) -> Keystore:
    copy = shutil.copy2(finished, tmp_path / "k.p12")
    return Keystore(copy, password_env="STORE_PASSWORD")


def versions(store: Keystore) -> dict[str, tuple[str, int | None]]:
    return {key.key_id: (key.version, key.versions) for key in store.list_keys()}


@pytest.mark.nightly
def test_a_key_is_added_to_an_existing_file(store: Keystore, tmp_path: Path) -> None:
    made = store.create_key("Sales")
    today = datetime.datetime.now().astimezone().date()
    assert (made.key_id, made.state, made.version, made.versions) == ("sales", "enabled", "1", 1)
    assert made.created in {str(today), str(today - datetime.timedelta(days=1))}
    assert made.detail["path"] == str(store.path)
    assert store.keys() == ["k1", "k2", "sales"]
    assert "Alias name: sales" in listed(Path(store.path))
    assert stat.S_IMODE(Path(store.path).stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [store.path], "nothing but the keystore is left"


def test_the_first_key_makes_the_file(tmp_path: Path) -> None:
    store = Keystore(tmp_path / "new.p12", password_env="STORE_PASSWORD")
    assert store.create_key("k1", key_bits=128).key_id == "k1"
    assert stat.S_IMODE((tmp_path / "new.p12").stat().st_mode) == 0o600
    assert store.keys() == ["k1"]


def test_a_key_is_never_overwritten(store: Keystore) -> None:
    before = Path(store.path).read_bytes()
    with pytest.raises(ConfigurationError, match="already has a key 'k1'") as caught:
        store.create_key("K1")
    assert "rotate_key" in caught.value.hint
    assert Path(store.path).read_bytes() == before


@pytest.mark.nightly
def test_rotation_adds_versions(store: Keystore) -> None:
    rotated = store.rotate_key("K1")
    assert (rotated.version, rotated.versions, rotated.detail["entry"]) == ("2", 2, "k1.v2")
    store.rotate_key("k1", key_bits=128)
    assert versions(store) == {"k1": ("3", 3), "k2": ("1", 1)}
    names = re.findall("Alias name: (.*)", listed(Path(store.path)))
    assert sorted(names) == ["k1", "k1.v2", "k1.v3", "k2"]
    assert store.keys() == ["k1", "k2"]


@pytest.mark.nightly
def test_a_version_that_was_destroyed_is_not_made_again(store: Keystore) -> None:
    store.rotate_key("k1")
    store.rotate_key("k1")
    command = ["keytool", "-delete", "-alias", "k1.v2", "-keystore", str(store.path)]
    subprocess.run([*command, "-storepass", SECRET], check=True, capture_output=True)
    assert store.describe_key("k1").versions == 2
    assert store.rotate_key("k1").version == "4"


@pytest.mark.parametrize("method", ["describe_key", "rotate_key"])
def test_a_missing_key_is_named_beside_those_there_are(store: Keystore, method: str) -> None:
    with pytest.raises(KeyNotFoundError, match="no key 'nope'") as caught:
        getattr(store, method)("nope")
    assert "k1, k2" in caught.value.hint


@pytest.mark.parametrize("method", ["create_key", "describe_key", "rotate_key"])
def test_the_name_of_a_version_is_no_key_id(store: Keystore, method: str) -> None:
    with pytest.raises(ConfigurationError, match="the name of version 2 of key 'k1'"):
        getattr(store, method)("k1.v2")


@pytest.mark.nightly
def test_a_link_to_the_file_stays_a_link(store: Keystore, tmp_path: Path) -> None:
    link = tmp_path / "link.p12"
    link.symlink_to(store.path)
    Keystore(link, password_env="STORE_PASSWORD").create_key("k3")
    assert link.is_symlink()
    assert store.keys() == ["k1", "k2", "k3"]


@pytest.mark.parametrize("where", ["generate", "replace"])
def test_a_failure_leaves_the_old_file(
    store: Keystore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = Path(store.path).read_bytes()

    def fail(*_: object) -> None:
        raise ConfigurationError("disk full")

    monkeypatch.setattr(_keytool if where == "generate" else _atomic, where, fail)
    with pytest.raises(ConfigurationError, match="disk full"):
        store.rotate_key("k1")
    assert Path(store.path).read_bytes() == before
    assert list(tmp_path.iterdir()) == [store.path]


def test_a_file_that_another_host_makes_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a share without hard links, which may show another host's file late."""
    path = tmp_path / "keys.p12"

    def no_links(*_: object) -> None:
        path.write_bytes(b"another host's")
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(Path, "exists", lambda *_, **__: False)
    with pytest.raises(ConfigurationError, match="already exists"):
        Keystore.create(path, ["k1"], password_env="STORE_PASSWORD")
    assert path.read_bytes() == b"another host's"


def test_a_keystore_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "keys.p12"
    assert Keystore.create(path, ["k1"], password_env="STORE_PASSWORD").keys() == ["k1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_share_that_goes_away_leaves_no_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", fails)
        patched.setattr(Path, "replace", fails)
        with pytest.raises(OSError, match="gone"):
            Keystore.create(tmp_path / "keys.p12", ["k1"], password_env="STORE_PASSWORD")
    assert list(tmp_path.iterdir()) == []


KILLED_BEFORE_REPLACE = """
    import os, signal, sys
    from pyspark_iceberg_crypto import Keystore
    from pyspark_iceberg_crypto.kms.keystore import _atomic
    _atomic.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    Keystore(sys.argv[1], password_env="STORE_PASSWORD").rotate_key("k1")
"""


@pytest.mark.nightly
def test_a_crash_leaves_the_old_file_and_no_lock(store: Keystore) -> None:
    before = Path(store.path).read_bytes()
    program = textwrap.dedent(KILLED_BEFORE_REPLACE)
    done = subprocess.run([sys.executable, "-c", program, str(store.path)], capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    assert Path(store.path).read_bytes() == before
    assert store.rotate_key("k1").version == "2", "the next writer is not held up"


@pytest.mark.nightly
def test_two_processes_that_rotate_wait_for_each_other(store: Keystore) -> None:
    program = (
        "import sys; from pyspark_iceberg_crypto import Keystore\n"
        "Keystore(sys.argv[1], password_env='STORE_PASSWORD').rotate_key('k1')"
    )
    command = [sys.executable, "-c", program, str(store.path)]
    writers = [subprocess.Popen(command) for _ in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 3
    assert versions(store) == {"k1": ("4", 4), "k2": ("1", 1)}


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644, 0o666])
@pytest.mark.parametrize("which", ["keystore", "password"])
def test_a_file_that_is_open_to_others_is_refused(
    store: Keystore, tmp_path: Path, mode: int, which: str
) -> None:
    secret = secret_file(tmp_path / "password", SECRET)
    file = secret if which == "password" else Path(store.path)
    file.chmod(mode)
    store = Keystore(store.path, password_file=secret)
    for call in (store.keys, lambda: store.create_key("k3"), lambda: store.rotate_key("k1")):
        with pytest.raises(ConfigurationError, match="open to others") as caught:
            call()
        assert f"chmod 600 {file}" in caught.value.hint


def test_the_group_may_read_a_file_of_another_user(
    store: Keystore, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(store.path)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    file.chmod(0o440)
    assert store.keys() == ["k1", "k2"]
    for mode in (0o444, 0o460):
        file.chmod(mode)
        with pytest.raises(ConfigurationError, match="open to others"):
            store.keys()


def test_owner_and_mode_stay(store: Keystore) -> None:
    file = Path(store.path)
    if os.geteuid() == 0:  # only root can give a file away
        os.chown(file, 12345, 54321)
    file.chmod(0o400)
    before = file.stat()
    store.create_key("k3")
    after = file.stat()
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert stat.S_IMODE(after.st_mode) == 0o400


def test_the_policy_names_what_spark_must_read(store: Keystore, tmp_path: Path) -> None:
    policy = store.driver_policy(["k1"])
    assert policy.startswith("#")
    assert f"chmod 400 {store.path}" in policy
    assert "STORE_PASSWORD" in policy
    assert SECRET not in policy
    by_file = Keystore(store.path, password_file=tmp_path / "pass word").driver_policy(["k1"])
    assert f"chmod 400 '{tmp_path}/pass word'" in by_file
