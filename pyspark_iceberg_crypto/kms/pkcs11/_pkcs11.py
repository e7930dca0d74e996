"""A hardware security module, by PKCS#11."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import _versions
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo
from pyspark_iceberg_crypto.kms._settings import AnyPath, about, absolute, setting
from pyspark_iceberg_crypto.kms.pkcs11._keys import EXTRA, Pkcs11Keys, Place
from pyspark_iceberg_crypto.kms.pkcs11._tool import Pin, Token, TokenKey


def _slot_number(slot: int | str | None) -> int:
    try:
        number = slot if isinstance(slot, int) else int(str(slot), 0)
    except ValueError:
        number = -1
    if isinstance(slot, bool) or number < 0:
        raise ConfigurationError(
            f"{slot!r} is not a slot's id", "give the number that pkcs11-tool --list-slots shows"
        )
    return number


@dataclass(frozen=True)
class Pkcs11(_versions.VersionedKms):
    """AES keys on a token of a hardware security module (HSM), which they never leave.

    Spark uses the token through the HSM's own PKCS#11 library, so every machine that Spark runs on needs the
    library at this path, and the pin in the same place. A key id is the label (CKA_LABEL) of a key.

    A new key is sensitive, never extractable, and usable after login only. One that can be extracted, or that could
    be once, is not "enabled": its state is "can be extracted", and ``check`` without a key's name leaves it out.
    Spark itself uses it if the token keeps it sensitive. Running Spark sessions see a new version within 10 s.

    Making and listing keys runs OpenSC's ``pkcs11-tool``; Spark does not need it. Each run is one login.

    Raises:
        ConfigurationError: not exactly one of token_label and slot, or of pin_env and pin_file, is given.
    """

    library: AnyPath = field(
        metadata=about(
            "The HSM's PKCS#11 library, such as /usr/lib/softhsm/libsofthsm2.so.", text=absolute
        )
    )
    token_label: str | None = setting("The token's label.")
    slot: int | str | None = setting(
        "Instead, the id of the slot that the token is in, such as 0x1866d758. Slots may be "
        "renumbered when tokens come and go; labels stay the same.",
        text=lambda slot: str(_slot_number(slot)),
    )
    pin_env: str | None = setting(
        "The name of the environment variable that holds the pin of the token's user."
    )
    pin_file: AnyPath | None = setting(
        "Instead, a file that holds the pin; its owner's alone.", text=absolute
    )

    kms_type: ClassVar[str] = "pkcs11"
    extra: ClassVar[str] = EXTRA

    def __post_init__(self) -> None:
        if not os.fspath(self.library):
            raise ConfigurationError(
                "the PKCS#11 library's path is empty", "library='/usr/lib/.../lib....so'"
            )
        if (self.token_label is None) == (self.slot is None) or self.token_label == "":
            raise ConfigurationError(
                "a Pkcs11 needs one of token_label and slot",
                "name the token by its label; pkcs11-tool --list-slots shows it",
            )
        if self.slot is not None:
            _slot_number(self.slot)
        if bool(self.pin_env) == bool(self.pin_file):
            raise ConfigurationError(
                "a Pkcs11 needs one of pin_env and pin_file",
                "name the environment variable or the file that holds the pin",
            )

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return what Spark's user needs of the token: PKCS#11 itself has no language for rights."""
        tool = f"pkcs11-tool --module {shlex.quote(self._library())} {shlex.join(self._where())}"
        lines = [
            f"# Least privilege for Spark on keys {_versions.name_list(key_ids)} of {self._name}.",
            "# PKCS#11 has no rights for single keys: anyone who logs in to a token may use every key on it.",
            "# 1. A token (HSM partition) with these keys and no others; Spark's own user and pin (CKU_USER),",
            "#    never the security officer's (CKU_SO).",
            "# 2. Where the HSM has roles of its own, Spark's needs: C_Login, C_FindObjects, C_Encrypt and",
            "#    C_Decrypt with CKM_AES_GCM. It makes, changes, wraps and deletes no key.",
            "# 3. Each key: CKA_SENSITIVE, CKA_PRIVATE, CKA_ENCRYPT, CKA_DECRYPT true; CKA_EXTRACTABLE false.",
            "#    'Access' must show 'sensitive' and 'never extractable', 'Usage' 'encrypt, decrypt':",
            f"{tool} --login --list-objects --type secrkey",
        ]
        if self.pin_file:
            secret = shlex.quote(absolute(self.pin_file))
            lines += [
                "# 4. The pin, on every host; 'spark' being the user that Spark runs as:",
                f"chown spark: {secret}",
                f"chmod 400 {secret}",
            ]
        else:
            lines += [
                f"# 4. The pin in the environment of Spark's driver and executors: {self.pin_env}"
            ]
        return "\n".join(lines) + "\n"

    def _add(self, choose: Callable[[dict[str, list[int]]], str], bits: int) -> None:
        """Make a key, and take it back if someone else has made one of this label at the same time."""
        label, token = choose(_versions.by_key(self._entries())), self._token()
        ours = secrets.token_hex(16)
        token.generate(label, bits, ours)
        same = [key for key in token.aes_keys() if key.label == label]
        if len(same) > 1:
            # Spark uses no key of a token on which two have one label, and nothing was wrapped with ours yet.
            token.delete(ours)
            raise ConfigurationError(
                f"{self._name} has a key {label!r} that was created at the same time",
                "the new one was deleted again; list the keys, and try again if there is no such key",
            )

    def _key_id(self, name: str) -> str:
        return _versions.check_name(name)

    def _entries(self) -> dict[str, TokenKey]:
        # A key without a label has no id.
        return {key.label: key for key in self._token().aes_keys() if key.label}

    def _info(self, key_id: str, versions: list[int], entries: dict[str, TokenKey]) -> KeyInfo:
        newest = entries[_versions.entry(key_id, versions[-1])]
        state = ENABLED
        if not {"encrypt", "decrypt"} <= set(newest.usage.split(", ")):
            state = "not for encryption and decryption"
        elif "never extractable" not in newest.access.split(", "):
            state = "can be extracted"
        return KeyInfo(
            key_id=key_id,
            state=state,
            algorithm=f"AES-{newest.bits}",
            version=str(versions[-1]),
            versions=len(versions),
            detail={
                "token": self._name,
                "label": newest.label,
                "id": newest.id,
                "usage": newest.usage,
                "access": newest.access,
            },
        )

    def _open(self, call_seconds: float) -> Pkcs11Keys:
        slot = None if self.slot is None else _slot_number(self.slot)
        place = Place(self._library(), self.token_label, slot)
        return Pkcs11Keys(place, Pin(self.pin_env, self.pin_file))

    def _token(self) -> Token:
        return Token(self._library(), self._where(), self._name, Pin(self.pin_env, self.pin_file))

    def _where(self) -> tuple[str, str]:
        if self.token_label is not None:
            return ("--token-label", self.token_label)
        return ("--slot", str(_slot_number(self.slot)))

    @property
    def _name(self) -> str:
        which = f"slot {self.slot}" if self.token_label is None else f"token {self.token_label!r}"
        return f"PKCS#11 {which} of {self._library()}"

    def _library(self) -> str:
        return absolute(self.library)
