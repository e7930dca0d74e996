"""A PKCS12 keystore as a user makes one with the JDK's keytool: an oracle beside our own Keystore.create."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.files import secret_file
from pyspark_iceberg_crypto import Keystore
from pyspark_iceberg_crypto.kms.keystore import _keytool

QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")  # it lives for a second
KEY_BITS = {"k1": 256, "k2": 256, "k-128": 128, "k-192": 192, "k-256": 256}


@dataclass(frozen=True)
class TestKeystore:
    __test__ = False  # not a test class, whatever pytest thinks of the name

    path: Path
    password_file: Path

    def kms(self) -> Keystore:
        return Keystore(self.path, password_file=self.password_file)


def make_keystore(folder: Path, keys: dict[str, int] | None = None) -> TestKeystore:
    """A keystore with AES keys, name to bits, and its password in a file beside it; both their owner's alone."""
    password = "only-for-tests-3141"
    store = TestKeystore(folder / "master-keys.p12", folder / "master-keys.password")
    secret_file(store.password_file, password + "\n")
    for name, bits in (keys or KEY_BITS).items():
        subprocess.run(
            [
                "keytool",
                *QUICK,
                "-genseckey",
                "-alias",
                name,
                "-keyalg",
                "AES",
                "-keysize",
                str(bits),
            ]
            + ["-storetype", "PKCS12", "-keystore", str(store.path), "-storepass", password],
            check=True,
            capture_output=True,
        )
    store.path.chmod(0o600)  # keytool's own choice is 644
    return store


def few_iterations(patch: pytest.MonkeyPatch) -> None:
    """Has our Keystore hash passwords quickly: 600,000 iterations take seconds each time that a file is written.

    They are what the optimizing compiler is for.
    """
    patch.setattr(_keytool, "ITERATIONS", 1000)
    patch.setattr(_keytool, "MAC_ITERATIONS", 1000)
    patch.setattr(_keytool, "_JVM", (*_keytool._JVM, *QUICK))
