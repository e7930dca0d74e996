"""A KMS client of pyarrow's own API that wraps as this project's does in Vault: what another program would write."""

import base64
import struct
from typing import Any

import pyarrow.parquet.encryption as pe
from servers.vault import VaultServer

HEADER = b"ICWK\x01\x05vault"  # magic, layout, the name's length, the name; then the key's version


class ArrowVault(pe.KmsClient):  # type: ignore[misc]  # pyarrow has no types
    """Vault's transit engine, with its root's token."""

    def __init__(self, vault: VaultServer) -> None:
        super().__init__()
        self.vault = vault
        self.wrapped = 0

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.wrapped += 1
        body = {"plaintext": base64.b64encode(key_bytes).decode()}
        text = self._ask("encrypt", master_key_identifier, body)["ciphertext"]
        version = int(text.split(":")[1][1:])
        return base64.b64encode(HEADER + struct.pack(">i", version) + text.encode()).decode()

    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        blob = base64.b64decode(wrapped_key)
        assert blob.startswith(HEADER)
        body = {"ciphertext": blob[len(HEADER) + 4 :].decode()}
        return base64.b64decode(self._ask("decrypt", master_key_identifier, body)["plaintext"])

    def _ask(self, operation: str, key: str, body: dict[str, str]) -> dict[str, Any]:
        bound = {**body, "associated_data": base64.b64encode(key.encode()).decode()}
        found: dict[str, Any] = self.vault.call("POST", f"transit/{operation}/{key}", bound)["data"]
        return found
