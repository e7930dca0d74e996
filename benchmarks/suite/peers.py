"""Who is measured: ways to keep rows encrypted, and the plaintext that each is compared with."""

import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _spark import java_table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType


@dataclass
class Peer(ABC):
    """Tables of one kind, by short names.

    Attributes:
        name: what --peers and the tables call it.
        about: what it is, for the document.
        against: the peer that it is compared with, which is plaintext; None for plaintext.
    """

    name: str
    about: str
    against: str | None = None

    def encrypted_by_format(self) -> bool:
        """Whether its files are PARE or AGS1."""
        return False

    @abstractmethod
    def create(
        self, spark: SparkSession, table: str, rows: DataFrame, file_format: str = "parquet"
    ) -> None:
        """Makes a new, empty table in its place."""

    @abstractmethod
    def append(self, spark: SparkSession, table: str, rows: DataFrame) -> None: ...

    @abstractmethod
    def read(self, spark: SparkSession, table: str) -> DataFrame: ...

    @abstractmethod
    def file(self, spark: SparkSession, table: str) -> str:
        """The path of one of its files."""


@dataclass
class Iceberg(Peer):
    """Tables of an Iceberg catalog, format version 3."""

    catalog: str = ""
    encrypted: bool = False

    def __post_init__(self) -> None:
        self.namespace = f"{self.catalog}.{self.name.replace('-', '_')}"

    def table(self, name: str) -> str:
        return f"{self.namespace}.{name}"

    def properties(self, file_format: str) -> dict[str, str]:
        given = {"format-version": "3", "write.format.default": file_format}
        return given | ({"encryption.key-id": "k1"} if self.encrypted else {})

    def create(
        self, spark: SparkSession, table: str, rows: DataFrame, file_format: str = "parquet"
    ) -> None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.namespace}")
        spark.sql(f"DROP TABLE IF EXISTS {self.table(table)} PURGE")
        columns = ", ".join(
            f"{one.name} {one.dataType.simpleString()}" for one in self.stored(rows).schema
        )
        properties = ", ".join(f"'{k}'='{v}'" for k, v in self.properties(file_format).items())
        spark.sql(
            f"CREATE TABLE {self.table(table)} ({columns}) USING iceberg TBLPROPERTIES ({properties})"
        )

    def append(self, spark: SparkSession, table: str, rows: DataFrame) -> None:
        self.stored(rows).writeTo(self.table(table)).append()

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        return spark.table(self.table(table))

    def file(self, spark: SparkSession, table: str) -> str:
        path: str = spark.table(f"{self.table(table)}.files").collect()[0].file_path
        return path.removeprefix("file:")

    def encrypted_by_format(self) -> bool:
        return self.encrypted

    def stored(self, rows: DataFrame) -> DataFrame:
        """The rows as the table has them."""
        return rows

    def java(self, spark: SparkSession, table: str) -> Any:
        """Iceberg's own Table, loaded again."""
        return java_table(spark, self.table(table))


@dataclass
class EncryptedColumns(Iceberg):
    """Each value is encrypted by Spark's aes_encrypt, into a plaintext table of binary columns."""

    schemas: dict[str, StructType] = field(default_factory=dict)
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def create(
        self, spark: SparkSession, table: str, rows: DataFrame, file_format: str = "parquet"
    ) -> None:
        self.schemas[table] = rows.schema
        super().create(spark, table, rows, file_format)

    def stored(self, rows: DataFrame) -> DataFrame:
        return rows.select(
            *[
                f.expr(f"aes_encrypt(CAST({name} AS STRING), unhex('{self.key}'), 'GCM')").alias(
                    name
                )
                for name in rows.columns
            ]
        )

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        decrypt = "CAST(CAST(aes_decrypt({0}, unhex('{1}'), 'GCM') AS STRING) AS {2}) AS {0}"
        return spark.table(self.table(table)).selectExpr(
            *[
                decrypt.format(one.name, self.key, one.dataType.simpleString())
                for one in self.schemas[table]
            ]
        )


@dataclass
class Files(Peer):
    """Files of Spark's own sources, in a folder."""

    file_format: str = ""
    writing: dict[str, str] = field(default_factory=dict)
    reading: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    schemas: dict[str, StructType] = field(default_factory=dict)

    def path(self, table: str) -> str:
        return f"{self.folder}/{self.name}/{table}"

    def create(
        self, spark: SparkSession, table: str, rows: DataFrame, file_format: str = "parquet"
    ) -> None:
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.path(table))
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        path.getFileSystem(conf).delete(path, True)
        self.schemas[table] = rows.schema

    def append(self, spark: SparkSession, table: str, rows: DataFrame) -> None:
        options = {
            key: value.format(columns=",".join(rows.columns)) for key, value in self.writing.items()
        }
        writer = rows.write.mode("append").option("compression", "zstd").options(**options)
        writer.format(self.file_format).save(self.path(table))

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        reader = spark.read.options(**self.reading).schema(self.schemas[table])
        return reader.format(self.file_format).load(self.path(table))

    def file(self, spark: SparkSession, table: str) -> str:
        return str(next(Path(self.path(table)).glob("part-*")))

    def encrypted_by_format(self) -> bool:
        return self.writing.keys() >= FACTORY.keys()


FACTORY = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "io.icebergcrypto.benchmarks.ParquetKms",
}


ORC_KEYS = {"orc.key.provider": "benchmarks"}


def all_peers(folder: str) -> dict[str, Peer]:
    """By name.

    Args:
        folder: where those without a catalog have their files.
    """
    plain = [
        Iceberg("plaintext", "plaintext Iceberg on Hive", catalog="plain_hive"),
        *[
            Iceberg(f"plaintext-{kind}", f"plaintext Iceberg on {label}", catalog=f"plain_{kind}")
            for kind, label in (("rest", "REST"), ("jdbc", "JDBC"), ("hadoop", "Hadoop"))
        ],
        Files("parquet", "Spark's Parquet files", file_format="parquet", folder=folder),
        Files("orc", "Spark's ORC files", file_format="orc", folder=folder),
    ]
    encrypted = [
        Iceberg("stock", "Iceberg's own encryption on Hive", "plaintext", "stock_hive", True),
        Iceberg("hive", "this project on Hive", "plaintext", "enc_hive", True),
        Iceberg("rest", "this project on REST", "plaintext-rest", "enc_rest", True),
        Iceberg("jdbc", "this project on JDBC", "plaintext-jdbc", "enc_jdbc", True),
        Iceberg("hadoop", "this project on Hadoop", "plaintext-hadoop", "enc_hadoop", True),
        Files(
            "parquet-crypto",
            "Parquet modular encryption by parquet-java's PropertiesDrivenCryptoFactory, one key",
            "parquet",
            file_format="parquet",
            writing=FACTORY | {"parquet.encryption.uniform.key": "k1"},
            reading=FACTORY,
            folder=folder,
        ),
        Files(
            "orc-crypto",
            "ORC column encryption, all columns (AES-CTR: without authentication)",
            "orc",
            file_format="orc",
            writing=ORC_KEYS | {"orc.encrypt": "k1:{columns}", "orc.mask": "nullify:{columns}"},
            reading=ORC_KEYS,
            folder=folder,
        ),
        EncryptedColumns(
            "columns",
            "plaintext Iceberg, each value by Spark's aes_encrypt",
            "plaintext",
            "plain_hive",
        ),
    ]
    return {peer.name: peer for peer in [*plain, *encrypted]}
