"""Hostile text for every parser on this side: what others wrote into errors, key ids, and answers to a KMS's set-up.

A target gives a value or one of our errors, nothing else, and in no time to speak of. The rounds' seeds go up from
SEED.
"""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.in_process import evidence_json

from pyspark_iceberg_crypto import AzureKeyVault, GcpKms, Vault, VerifyReport, VerifyTablesReport
from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.jvm import _typed
from pyspark_iceberg_crypto.kms import _blob, _client, _versions
from pyspark_iceberg_crypto.kms.keystore import _keytool
from pyspark_iceberg_crypto.kms.pkcs11 import _tool as _pkcs11_tool
from pyspark_iceberg_crypto.kms.vault import _vault
from pyspark_iceberg_crypto.verbs import kept_reports

SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "0"))
ROUNDS = int(os.environ.get("ICEBERG_CRYPTO_FUZZ", "2000"))
WORDS = (
    *(
        "",
        "\n",
        "\r\n  hint: ",
        "\0",
        "\ud800",
        ": ",
        ", ",
        "://",
        "/",
        "http://[::1",
        ".v2",
        "NaN",
    ),
    *(
        "-1",
        "1e99999",
        "9" * 5000,
        "\u0663",
        "null",
        "[]",
        "{}",
        "[[[[",
        "a" * 5000,
        "io.icebergcrypto.",
    ),
    *("aaa, Xyz 12, 2026, SecretKeyEntry,", "Secret Key Object; AES length "),
)

STACK_TRACE = (
    "org.apache.spark.SparkException: Job aborted\n\tat a.B.c(D.java:1)\nCaused by: "
    "io.icebergcrypto.TamperedException: Table lake.db.t: f is not what was written\n  hint: Restore it.\n\tat x.Y\n"
)
KEYTOOL = "Keystore type: PKCS12\n\nk1, Nov 21, 2026, SecretKeyEntry, \nk1.v2, Jan 1, 2027, SecretKeyEntry, \n"
PKCS11_TOOL = (
    "Secret Key Object; AES length 32\n  label:      k1\n  ID:         01ab\n  Usage:      encrypt, decrypt\n"
    "  Access:     never extractable, local\n"
)
VAULT_KEY = json.dumps(
    {
        "name": "k1",
        "type": "aes256-gcm96",
        "latest_version": 2,
        "min_available_version": 0,
        "keys": {"1": 1700000000, "2": {"creation_time": "2026-11-21T00:00:00Z"}},
    }
)


def mutated(valid: str, rng: random.Random) -> str:
    """Valid text with up to four changes: cut, doubled, overwritten, or with a word put in."""
    text = valid
    for _ in range(rng.randrange(5)):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + 12)
        text = rng.choice(
            (
                text[:at] + rng.choice(WORDS) + text[end:],
                text[:at] + chr(rng.randrange(256)) + text[at + 1 :],
                text[:at] + text[end:],
                text[:end] + text[at:],
                text[:at],
            )
        )
    return text


def vault_key(text: str) -> object:
    try:
        data = json.loads(text)
    except ValueError:  # hvac's to tell
        return None
    return _vault._key_info(data)


def listed(text: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_keytool, "_run", lambda *_: text)
        return _keytool.entries(Path("k.p12"), _keytool.Password("-storepass:env", "P"))


def version_names(text: str) -> object:
    found = _versions.by_key([text, f"{text}.v7"])
    assert sum(map(len, found.values())) <= 2
    return _versions.check_name(text)


def report(text: str) -> object:
    return kept_reports._report(
        kept_reports._parsed(text, "report.json"), "report.json", VerifyReport
    )


REPORT = VerifyReport.of(evidence_json())
TARGETS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "errors in stack traces": (STACK_TRACE, _typed.from_text),
    "keytool's list": (KEYTOOL, listed),
    "pkcs11-tool's list": (PKCS11_TOOL, _pkcs11_tool._parse),
    "Vault's keys": (VAULT_KEY, vault_key),
    "names of versions": ("key.v2", version_names),
    "Azure's key ids": (
        "https://name.vault.azure.net/keys/k1/0123456789abcdef0123456789abcdef",
        AzureKeyVault("https://name.vault.azure.net")._parse,
    ),
    "Google's key names": (
        "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        GcpKms()._key,
    ),
    "key names": ("key-1", lambda name: _client.require_bare_name(name, "Vault", 200)),
    "Base64": ("QUJD", _blob.decoded),
    "addresses": ("https://vault:8200", lambda text: Vault(text, token_env="T")),
    "reports": (REPORT.to_json(), report),
    "reports on tables": (VerifyTablesReport("lake", [REPORT], []).to_json(), report),
    "Azure's addresses": ("https://name.vault.azure.net", AzureKeyVault),
}


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_text(name: str) -> None:
    valid, parse = TARGETS[name]
    values = 0
    for seed in range(SEED, SEED + ROUNDS):
        text = mutated(valid, random.Random(seed))
        started = time.perf_counter()
        try:
            values += parse(text) is not None
        except IcebergCryptoError as error:
            assert error.message, f"seed {seed}"
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text[:200]!r}") from error
        assert time.perf_counter() - started < 5, f"seed {seed}"
    assert values or parse(valid) is None
