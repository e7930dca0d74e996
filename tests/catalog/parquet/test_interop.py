"""Files of other programs, and other programs on ours: pyarrow, Parquet's own factory. The keys are in Vault."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from doubles.arrow_kms import ArrowVault
from harness.columns import keyed_session
from pyspark.sql import SparkSession
from servers.vault import VaultServer, start_vault

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    ParquetKeys,
    Vault,
    inspect_file,
    rotate_parquet_keys,
    typed_errors,
    verify_folder,
)

STOCK = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
KEYS = ParquetKeys(footer="footer", columns={"ssn": "pii"}, key_material_beside=True)
ROWS = {"id": [1, 2, 3], "ssn": ["a", "b", "c"]}


def nightly(value: object) -> Any:
    return pytest.param(value, marks=pytest.mark.nightly)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VaultServer]:
    server = start_vault(tmp_path_factory.mktemp("vault") / "log")
    for key in ("footer", "pii"):
        server.make_key(key)
    yield server
    server.stop()


def session(spark: SparkSession, vault: VaultServer, folder: Path, *keys: str) -> SparkSession:
    """A session whose login may use some of Vault's keys."""
    token = folder / f"token-{uuid.uuid4().hex}"
    vault.token_login(token, vault.driver_policy(*keys))
    kms = Vault(vault.address, token_file=token)
    return keyed_session(spark, kms, folder, parquet_columns=KEYS)


@pytest.fixture(scope="module")
def own(
    spark: SparkSession, vault: VaultServer, tmp_path_factory: pytest.TempPathFactory
) -> SparkSession:
    return session(spark, vault, tmp_path_factory.mktemp("own"), "footer", "pii")


def arrow(vault: VaultServer) -> tuple[ArrowVault, pe.CryptoFactory]:
    client = ArrowVault(vault)
    return client, pe.CryptoFactory(lambda _: client)


def read_by_arrow(file: Path, vault: VaultServer) -> dict[str, list[object]]:
    properties = arrow(vault)[1].file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    with pq.ParquetFile(str(file), decryption_properties=properties) as opened:
        return dict(opened.read().to_pydict())


@pytest.mark.nightly
@pytest.mark.parametrize(
    "keys",
    [
        ParquetKeys(footer="footer", columns={"ssn": "pii"}),
        ParquetKeys(uniform="pii", algorithm="AES_GCM_CTR_V1", double_wrapping=False),
        ParquetKeys(footer="footer", columns={"ssn": "pii"}, plaintext_footer=True, complete=False),
    ],
)
def test_pyarrow_reads_ours(
    own: SparkSession, vault: VaultServer, tmp_path: Path, keys: ParquetKeys
) -> None:
    rows = own.createDataFrame(list(zip(*ROWS.values(), strict=True)), "id long, ssn string")
    rows.coalesce(1).write.options(**keys.options()).parquet(f"{tmp_path}/t")
    (file,) = (tmp_path / "t").glob("part-*.parquet")
    assert read_by_arrow(file, vault) == ROWS


@pytest.mark.parametrize("double", [True, nightly(False)])
@pytest.mark.parametrize("open_footer", [False, nightly(True)])
def test_we_read_pyarrows(
    own: SparkSession, vault: VaultServer, tmp_path: Path, double: bool, open_footer: bool
) -> None:
    file = tmp_path / "arrow.parquet"
    settings = pe.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"pii": ["ssn"]},
        double_wrapping=double,
        plaintext_footer=open_footer,
    )
    client, factory = arrow(vault)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    table = pa.table(ROWS)
    with pq.ParquetWriter(str(file), table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    assert client.wrapped == 2
    assert [tuple(row) for row in own.read.parquet(str(file)).sort("id").collect()] == list(
        zip(*ROWS.values(), strict=True)
    )
    seen = inspect_file(own, str(file), pages=True)
    assert seen.pages_checked
    assert {c.name: (c.protected_by, c.key_id) for c in seen.columns or ()} == {
        "id": ("nothing", None),
        "ssn": ("column key", "pii"),
    }
    assert seen.footer_key == "footer"


@pytest.mark.nightly
def test_pyarrows_pages_of_version_2(own: SparkSession, vault: VaultServer, tmp_path: Path) -> None:
    """Which Parquet's Java reader calls tampered with: they are checked, and AES-CTR's accuse nobody."""
    table = pa.table(
        {"ssn": ["a", None, "c"], "none": pa.array([None] * 3, "int32"), "id": [1, 2, 3]}
    )
    for name, more in {
        "closed": {},
        "open": {"plaintext_footer": True},
        "ctr": {"encryption_algorithm": "AES_GCM_CTR_V1"},
    }.items():
        settings = pe.EncryptionConfiguration(
            footer_key="footer", column_keys={"pii": ["ssn", "none"]}, **more
        )
        made = arrow(vault)[1].file_encryption_properties(pe.KmsConnectionConfig(), settings)
        file = tmp_path / name / "arrow.parquet"
        file.parent.mkdir()
        with pq.ParquetWriter(
            str(file), table.schema, encryption_properties=made, data_page_version="2.0"
        ) as writer:
            writer.write_table(table)
        assert inspect_file(own, str(file), pages=True).pages_checked
        assert codes(own, file) == {"plaintext"}, "the id, and the footer"
        if name != "ctr":
            data = bytearray(file.read_bytes())
            data[60] ^= 1  # of ssn
            file.write_bytes(data)
            assert codes(own, file) == {"tampered"}


def codes(spark: SparkSession, file: Path) -> set[str]:
    return {problem.code for problem in verify_folder(spark, str(file.parent), deep=True).problems}


@pytest.mark.nightly
def test_parquets_own_factory(
    own: SparkSession, spark: SparkSession, vault: VaultServer, tmp_path: Path
) -> None:
    """With our KMS client, by its class's name: it reads ours, and we read what it wrote."""
    rows = own.createDataFrame(list(zip(*ROWS.values(), strict=True)), "id long, ssn string")
    rows.write.parquet(f"{tmp_path}/ours")
    stock = session(spark, vault, tmp_path, "footer", "pii")
    # a JVM's sessions share its clients of KMSs, whatever their settings
    jvm: Any = spark._jvm
    jvm.org.apache.parquet.crypto.keytools.KeyToolkit.removeCacheEntriesForAllTokens()
    stock.conf.set("parquet.crypto.factory.class", STOCK)
    stock.conf.set(
        "parquet.encryption.kms.client.class", "io.icebergcrypto.parquet.ParquetKmsClient"
    )
    assert stock.read.parquet(f"{tmp_path}/ours").count() == 3
    again = stock.createDataFrame(rows.collect(), rows.schema)
    again.write.parquet(f"{tmp_path}/stocks")
    assert own.read.parquet(f"{tmp_path}/stocks").filter("ssn = 'b'").count() == 1


@pytest.mark.nightly
def test_vault_decides_who_reads_a_column(
    own: SparkSession, spark: SparkSession, vault: VaultServer, tmp_path: Path
) -> None:
    rows = own.createDataFrame(list(zip(*ROWS.values(), strict=True)), "id long, ssn string")
    rows.write.parquet(f"{tmp_path}/t")
    clerk = session(spark, vault, tmp_path, "footer").read.parquet(f"{tmp_path}/t")
    assert clerk.selectExpr("sum(id)").first()[0] == 6
    with pytest.raises(AccessDeniedError, match="'pii'"), typed_errors():
        clerk.collect()
    vault.rotate_key("pii")
    rotate_parquet_keys(own, f"{tmp_path}/t")
    vault.configure_key("pii", min_decryption_version=2)
    fresh = session(spark, vault, tmp_path, "footer", "pii")
    assert fresh.read.parquet(f"{tmp_path}/t").filter("ssn = 'c'").count() == 1
    vault.configure_key("pii", min_decryption_version=1)
