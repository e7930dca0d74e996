"""What the platform engineer of test_platform_engineer.py does, with the package's public names alone."""

from collections.abc import Callable
from typing import Any

from harness.steps import given, tell
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    IcebergCryptoError,
    Vault,
    configure_spark,
    diagnose,
    typed_errors,
    verify_table,
)


def main() -> None:
    settings, builder = given()
    told = with_servers(settings, builder) if "uri" in settings else with_jars(builder)
    tell(told)


def with_servers(settings: dict[str, Any], builder: SparkSession.Builder) -> dict[str, Any]:
    """A REST catalog and Vault: what works, and each mistake."""
    rest = {"type": "rest", "uri": settings["uri"]}
    vault = Vault(settings["vault"], token_file=settings["token"])
    spark = configure_spark(builder, "lake", **rest, kms=vault).getOrCreate()
    vault.check(spark, "lake", "sales")
    told: dict[str, Any] = {"doctor": str(diagnose(spark, "lake", key_ids=["sales"]))}
    spark.sql("CREATE NAMESPACE lake.db")
    create = "CREATE TABLE lake.db.{} (id INT) USING iceberg TBLPROPERTIES ('{}'='{}')"
    spark.sql(create.format("t", "encryption.key-id", "sales"))
    spark.sql("INSERT INTO lake.db.t VALUES (1), (2)")
    told["rows"] = sorted(row.id for row in spark.table("lake.db.t").collect())
    told["verified"] = verify_table(spark, "lake.db.t", deep=True).ok

    def sql(statement: str, **options: Any) -> dict[str, str]:
        def work() -> None:
            if options:
                configure_spark(spark, **{**rest, "kms": vault, **options})
            spark.sql(statement).collect()

        return mistake(work)

    told["wrong key id"] = sql(create.format("u", "encryption.key-id", "slaes"))
    told["misspelt table property"] = sql(create.format("u", "encryption.keyid", "sales"))
    told["forgotten catalog"] = sql(
        "CREATE TABLE u (id INT) TBLPROPERTIES ('encryption.key-id'='sales')"
    )
    told["rule that comes late"] = sql("SELECT 1", require_encryption=True)
    told["misspelt catalog property"] = sql(
        "SHOW NAMESPACES IN strict", catalog="strict", options={"encryption.requird": "true"}
    )
    told["misspelt KMS property"] = sql(
        "SHOW NAMESPACES IN slow",
        catalog="slow",
        options={"encryption.kms.vault.transit-mnt": "transit"},
    )
    down = Vault(settings["nobody"], token_file=settings["token"])
    told["KMS down"] = sql("SELECT * FROM down.db.t", catalog="down", kms=down)
    told["tables"] = [row.tableName for row in spark.sql("SHOW TABLES IN lake.db").collect()]
    spark.stop()
    return told


def with_jars(builder: SparkSession.Builder) -> dict[str, Any]:
    """Whatever jars Spark was started with."""
    spark = builder.getOrCreate()
    told = {
        "SQL": mistake(lambda: spark.sql("SHOW NAMESPACES IN lake").collect()),
        "Python": mistake(lambda: configure_spark(spark, "other", type="hadoop", warehouse="lake")),
    }
    spark.stop()
    return told


def mistake(work: Callable[[], object]) -> dict[str, str]:
    """The error that it leads to."""
    try:
        with typed_errors():
            work()
    except IcebergCryptoError as error:
        return {"type": type(error).__name__, "message": error.message, "hint": error.hint}
    except Exception as error:  # noqa: BLE001 (told by the test)
        return {"type": type(error).__name__, "message": str(error)[:2000], "hint": ""}
    return {"type": "", "message": "it worked", "hint": ""}


if __name__ == "__main__":
    main()
