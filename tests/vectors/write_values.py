"""Writes values-tink.json with Google's Tink for Python: `pip install tink cryptography; python write_values.py`.

The keys are derived from a value key as docs/encrypted-values.md says; Tink encrypts with them.
"""

import json
from pathlib import Path

import tink
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from tink import aead, daead, secret_key_access
from tink.proto import aes_siv_pb2, tink_pb2, x_aes_gcm_pb2

NAME = "customers"
VERSION = 0x1EAF00D4
VALUE_KEY = bytes(range(32))
PLAINTEXTS = ["", "a", "123-45-6789", "ä€𝄞", "x" * 1000]
CONTEXTS = ["", "db.customers.ssn"]


def derived(use: str, length: int) -> bytes:
    info = f"iceberg-crypto value key {use} {NAME}".encode()
    return HKDF(SHA256(), length, salt=None, info=info).derive(VALUE_KEY)


def handle(key_id: int, type_url: str, key: bytes) -> tink.KeysetHandle:
    keyset = tink_pb2.Keyset(primary_key_id=key_id)
    added = keyset.key.add(key_id=key_id, status=tink_pb2.ENABLED, output_prefix_type=tink_pb2.TINK)
    added.key_data.type_url = "type.googleapis.com/google.crypto.tink." + type_url
    added.key_data.value = key
    added.key_data.key_material_type = tink_pb2.KeyData.SYMMETRIC
    return tink.proto_keyset_format.parse(keyset.SerializeToString(), secret_key_access.TOKEN)


def main() -> None:
    aead.register()
    daead.register()
    params = x_aes_gcm_pb2.XAesGcmParams(salt_size=12)
    randomized = x_aes_gcm_pb2.XAesGcmKey(params=params, key_value=derived("randomized", 32))
    deterministic = aes_siv_pb2.AesSivKey(key_value=derived("deterministic", 64))
    xaes = handle(VERSION, "XAesGcmKey", randomized.SerializeToString()).primitive(aead.Aead)
    siv = handle(VERSION | 1, "AesSivKey", deterministic.SerializeToString()).primitive(
        daead.DeterministicAead
    )
    values = [
        {
            "plaintext": text,
            "context": context,
            "randomized": xaes.encrypt(text.encode(), context.encode()).hex(),
            "deterministic": siv.encrypt_deterministically(text.encode(), context.encode()).hex(),
        }
        for text in PLAINTEXTS
        for context in CONTEXTS
    ]
    written = {
        "name": NAME,
        "version": f"{VERSION:08x}",
        "value_key": VALUE_KEY.hex(),
        "values": values,
    }
    path = Path(__file__).with_name("values-tink.json")
    path.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
