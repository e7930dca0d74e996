"""ParquetKeys: what it refuses, and what Spark gets of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from pyspark_iceberg_crypto import ConfigurationError, Keystore, NotSupportedError, ParquetKeys
from pyspark_iceberg_crypto.settings import ICEBERG_KMS, spark_conf

ROOT = Path(__file__).resolve().parents[2]
JAVA = "jvm/core/src/main/java/io/icebergcrypto"
STORE = Keystore("/k.p12", password_env="P")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"footer": "a"}, "must be given together"),
        ({"columns": {"x": "a"}}, "must be given together"),
        ({"uniform": "a", "footer": "b", "columns": {"x": "b"}}, "cannot be combined"),
        ({"footer": "a", "columns": {"x": ""}}, "as the key of column 'x'"),
        ({"uniform": "a", "algorithm": "AES_CTR"}, "unknown algorithm"),
        ({"uniform": "a", "algorithm": "AES_GCM_CTR_V1", "require_integrity": True}, "not authen"),
        ({"uniform": "a", "data_key_length": 64}, "data keys of 64 bits"),
        ({"uniform": "a", "kek_length": 512}, "key encryption keys of 512 bits"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        ParquetKeys(**given)
    with pytest.raises(NotSupportedError, match="'a,b'"):
        ParquetKeys(footer="k", columns={"a,b": "k"})


def test_options() -> None:
    keys = ParquetKeys(footer="f", columns={"ssn": "arn:aws:k", "a.b": "k%1", "c": "arn:aws:k"})
    options = keys.options()
    assert options["parquet.crypto.factory.class"].endswith(".ParquetCryptoFactory")
    assert options["parquet.encryption.column.keys"] == "arn%3Aaws%3Ak:ssn,c;k%251:a.b"
    assert options["parquet.encryption.complete.columns"] == "true"
    assert options["parquet.encryption.uniform.key"] == ""
    assert ParquetKeys(uniform="u").options()["parquet.encryption.footer.key"] == ""


def test_the_same_names_in_java() -> None:
    java = (ROOT / JAVA / "kms/config/KmsProperties.java").read_text()
    names = java.split("ICEBERGS =", 1)[1].split(";", 1)[0]
    assert re.findall(r'"([a-z.-]+)"', names) == list(ICEBERG_KMS)


def test_options_make_no_table_laxer() -> None:
    """Spark keeps those of saveAsTable, and they would count in stricter sessions."""
    reads, integrity = (
        f"iceberg-crypto.parquet.{n}" for n in ("plaintext-reads", "require-integrity")
    )
    options = ParquetKeys(uniform="u").options()
    assert not {reads, integrity} & options.keys()
    strict = ParquetKeys(uniform="u", require_integrity=True, plaintext_reads=False).options()
    assert (strict[reads], strict[integrity]) == ("refuse", "true")
    conf = spark_conf(kms=STORE, parquet_columns=ParquetKeys(uniform="u"))
    assert (conf[f"spark.hadoop.{reads}"], conf[f"spark.hadoop.{integrity}"]) == ("allow", "false")


def test_settings_of_a_session() -> None:
    conf = spark_conf(kms=STORE, parquet_columns=ParquetKeys(uniform="u"), allowed_key_ids=["u"])
    hadoop = {k.removeprefix("spark.hadoop."): v for k, v in conf.items() if "hadoop" in k}
    assert hadoop["parquet.crypto.factory.class"].endswith(".ParquetCryptoFactory")
    assert hadoop["iceberg-crypto.encryption.kms-type"] == "keystore"
    assert hadoop["iceberg-crypto.encryption.kms.keystore.password-env"] == "P"
    assert hadoop["iceberg-crypto.encryption.allowed-key-ids"] == "u"
    assert hadoop["parquet.encryption.uniform.key"] == "u"
    assert conf["spark.sql.extensions"].endswith("ParquetWrites")
    assert not [name for name in spark_conf(kms=STORE) if "hadoop" in name]
    iceberg = {"kms.endpoint": "https://k", "client.region": "eu-1", "s3.endpoint": "https://s"}
    conf = spark_conf(kms=STORE, parquet_columns=ParquetKeys(uniform="u"), options=iceberg)
    assert conf["spark.hadoop.iceberg-crypto.kms.endpoint"] == "https://k"
    assert conf["spark.hadoop.iceberg-crypto.client.region"] == "eu-1"
    assert "spark.hadoop.iceberg-crypto.s3.endpoint" not in conf
    with pytest.raises(ConfigurationError, match="needs a KMS"):
        spark_conf(parquet_columns=ParquetKeys(uniform="u"))
    with pytest.raises(ConfigurationError, match=r"must be ParquetKeys"):
        spark_conf(kms=STORE, parquet_columns="u")  # type: ignore[arg-type]
