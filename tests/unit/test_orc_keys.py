"""OrcKeys: what it refuses, and what Spark gets of it."""

from typing import Any

import pytest

from pyspark_iceberg_crypto import (
    ConfigurationError,
    Keystore,
    NotSupportedError,
    OrcKeys,
    ParquetKeys,
)
from pyspark_iceberg_crypto.settings import spark_conf

STORE = Keystore("/k.p12", password_env="P")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"columns": {"x": ""}}, "as the key of column 'x'"),
        ({"columns": {" ": "k"}}, "not a column's name"),
        ({"columns": {"x": "k"}, "masks": {"x": "hide"}}, "'hide' as the mask of column 'x'"),
        ({"columns": {"x": "k"}, "masks": {"y": "redact"}}, "'y' has a mask and no key"),
        ({"require_integrity": True}, "only AES-CTR"),
        ({"data_key_length": 192}, "data keys of 192 bits"),
        ({"missing_keys": "null"}, "missing_keys is 'null'"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        OrcKeys(**given)
    with pytest.raises(NotSupportedError, match="'12'"):
        OrcKeys(columns={"12": "k"})


def test_options() -> None:
    keys = OrcKeys(
        columns={"ssn": "arn:aws:k", "a.b": "k_1", "`x.y`.ö": "arn:aws:k"},
        masks={"ssn": "redact,Yy", "a.b.c": "sha256"},
    )
    options = keys.options()
    assert options["orc.encrypt"] == "`arn:aws:k`:ssn,`x.y`.`ö`;k_1:a.b"
    assert options["orc.mask"] == "redact_any,Yy:ssn;sha256:a.b.c"
    assert OrcKeys().options()["orc.encrypt"] == ""


def test_settings_of_a_session() -> None:
    keys = OrcKeys(columns={"ssn": "u"}, missing_keys="fail", data_key_length=256)

    def hadoop(**more: Any) -> dict[str, str]:
        conf = spark_conf(kms=STORE, orc_columns=keys, **more)
        assert conf["spark.sql.extensions"].endswith("OrcChecks")
        return {k.removeprefix("spark.hadoop."): v for k, v in conf.items() if "hadoop" in k}

    made = hadoop(allowed_key_ids=["u"])
    assert made["iceberg-crypto.encryption.kms-type"] == "keystore"
    assert made["iceberg-crypto.encryption.allowed-key-ids"] == "u"
    assert made["orc.encrypt"] == "u:ssn"
    assert made["iceberg-crypto.orc.missing-keys"] == "fail"
    assert made["iceberg-crypto.orc.data-key-length"] == "256"
    assert made["orc.mask"] == ""  # takes away what a running session had
    provider = made["orc.key.provider"]
    assert provider.startswith("iceberg-crypto-")
    assert hadoop(allowed_key_ids=["u"])["orc.key.provider"] == provider
    assert hadoop()["orc.key.provider"] != provider  # ORC keeps providers by their names
    both = spark_conf(kms=STORE, orc_columns=keys, parquet_columns=ParquetKeys(uniform="u"))
    assert both["spark.sql.extensions"].endswith(
        "ParquetWrites,io.icebergcrypto.spark.orc.OrcChecks"
    )
    with pytest.raises(ConfigurationError, match="needs a KMS"):
        spark_conf(orc_columns=keys)
    with pytest.raises(ConfigurationError, match=r"must be OrcKeys"):
        spark_conf(kms=STORE, orc_columns="u")  # type: ignore[arg-type]
