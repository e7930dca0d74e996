"""SoftHSM2: a real PKCS#11 token in software, in a folder of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.used import used

PIN = "577215"  # ICEBERG_CRYPTO_TEST_PIN of every test JVM
SO_PIN = "66490153"
_FOLDERS = (
    "/usr/lib/softhsm",
    "/usr/lib/x86_64-linux-gnu/softhsm",
    "/usr/lib/aarch64-linux-gnu/softhsm",
    "/usr/lib64/softhsm",
    "/usr/lib64/pkcs11",
    "/usr/local/lib/softhsm",
    "/opt/homebrew/lib/softhsm",
)


def find_library() -> Path:
    """SoftHSM's PKCS#11 library, in the folders where distributions put it."""
    for folder in _FOLDERS:
        library = Path(folder) / "libsofthsm2.so"
        if library.exists():
            return library
    raise FileNotFoundError("no libsofthsm2.so: apt-get install -y softhsm2 opensc gcc libc6-dev")


def client_properties(**changes: object) -> dict[str, str]:
    """Catalog properties for a token: library=, token_label=, slot=, pin_file=...; None takes one away."""
    properties = {
        "encryption.kms-type": "pkcs11",
        "encryption.kms.retry.initial-delay-ms": "20",
    }
    for name, value in {"pin_env": "ICEBERG_CRYPTO_TEST_PIN", **changes}.items():
        if value is not None:
            properties[f"encryption.kms.pkcs11.{name.replace('_', '-')}"] = str(value)
    return properties


@dataclass
class SoftHsm:
    """Tokens in a folder. Make them before a JVM first uses the library: it reads the folder once.

    Attributes:
        configuration: what SOFTHSM2_CONF must name, for every process that uses the tokens.
        library: SoftHSM's library.
        slots: the slot of each token, by label.
    """

    configuration: Path
    library: Path = field(default_factory=find_library)
    slots: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        told = subprocess.run(["softhsm2-util", "--version"], capture_output=True, text=True)
        used("SoftHSM", told.stdout.strip())
        self.tokens.mkdir(parents=True)
        self.configuration.write_text(
            f"directories.tokendir = {self.tokens}\nobjectstore.backend = file\nlog.level = ERROR\n"
        )

    @property
    def tokens(self) -> Path:
        return self.configuration.parent / "tokens"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SOFTHSM2_CONF": str(self.configuration)}

    def make_token(self, label: str, pin: str = PIN) -> None:
        """Initializes a token in the free slot that SoftHSM always shows, and gives another number then."""
        command = ["softhsm2-util", "--init-token", "--free", "--label", label]
        told = subprocess.run(
            [*command, "--pin", pin, "--so-pin", SO_PIN],
            check=True,
            capture_output=True,
            text=True,
            env=self.environment,
        ).stdout
        self.slots[label] = int(told.split()[-1])

    def free_slot(self) -> int:
        """The slot that waits for a token to be initialized."""
        told = subprocess.run(
            ["softhsm2-util", "--show-slots"],
            check=True,
            capture_output=True,
            text=True,
            env=self.environment,
        ).stdout
        slots = [part for part in told.split("\nSlot ") if "Initialized:      no" in part]
        return int(slots[0].split()[0])

    def tool(self, token: str, *arguments: str, pin: str = PIN) -> str:
        """Runs pkcs11-tool as the token's user: an oracle beside our own Pkcs11."""
        return subprocess.run(
            ["pkcs11-tool", "--module", str(self.library), "--token-label", token]
            + ["--login", "--pin", "env:PIN", *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={**self.environment, "PIN": pin},
        ).stdout

    def make_key(self, token: str, label: str, *more: str, kind: str = "AES:32") -> None:
        """Makes a key that stays in the token and needs the login."""
        access = more or ("--sensitive", "--private")
        self.tool(token, "--keygen", "--key-type", kind, "--label", label, *access)

    def delete_key(self, token: str, label: str, pin: str = PIN) -> None:
        self.tool(token, "--delete-object", "--type", "secrkey", "--label", label, pin=pin)


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """Moves a folder away, and back at the end."""
    elsewhere = folder.with_name(folder.name + "-away")
    folder.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(folder)
