"""What a catalog asks of its KMS, and what doctor says of one, on a real session with a keystore."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.files import secret_file
from harness.lake import Lake
from pyspark.errors import AnalysisException
from servers.hadoop_kms import ADMIN, USER, start_hadoop_kms
from servers.ranger_kms import start_ranger_kms

from pyspark_iceberg_crypto import (
    ConfigurationError,
    HadoopKms,
    KeyNotFoundError,
    kms_metrics,
    typed_errors,
)
from pyspark_iceberg_crypto.doctor import DoctorReport, diagnose
from pyspark_iceberg_crypto.doctor._session import CATALOG, KEY, LOGIN, NETWORK, PERMISSION

ALL = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"


def nightly(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.nightly)


def counter(lake: Lake) -> Callable[[], tuple[int, int]]:
    """Tells the wraps and unwraps since it was last asked."""
    last = (0, 0)

    def since() -> tuple[int, int]:
        nonlocal last
        now = kms_metrics(lake.spark, lake.catalog)
        before, last = last, (now.wrap_calls, now.unwrap_calls)
        return last[0] - before[0], last[1] - before[1]

    return since


@pytest.mark.nightly
def test_the_calls_that_the_documents_promise(hadoop: Lake) -> None:
    """The table in docs/kms/README.md, in one JVM; tests/kms/test_every_kms.py has executors of their own."""
    lake = hadoop.with_options({})
    calls = counter(lake)
    table = lake.create()
    assert calls() == (2, 2)  # the trial, and the KEK that authenticates the metadata
    lake.insert(table, [1])
    assert calls() == (0, 0)
    lake.sql(
        f"CREATE TABLE {lake.table('copy')} USING iceberg TBLPROPERTIES ('encryption.key-id'='k1') "
        f"AS SELECT * FROM {table}"
    )
    assert calls() == (2, 2)
    lake.insert(table, [2])
    assert lake.ids(table) == [1, 2]
    assert calls() == (0, 0)

    lake = hadoop.with_options({})  # another client on the same table: nothing in its cache
    calls = counter(lake)
    table = lake.table()
    assert lake.ids(table) == [1, 2]
    assert calls() == (0, 1)
    lake.insert(table, [3])
    lake.run(
        f"MERGE INTO {table} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    lake.call("rewrite_data_files")
    lake.call("expire_snapshots", arguments=ALL)
    assert lake.ids(table) == [1, 2]
    assert calls() == (0, 0)


def test_check_and_doctor_agree_that_all_is_well(hadoop: Lake) -> None:
    lake = hadoop.with_options({"table-default.encryption.key-id": "k2"})
    store = lake.world.keystore.kms()
    store.check(lake.spark, lake.catalog)
    found = diagnose(lake.spark, lake.catalog, key_ids=["k1", "k-128"])
    assert found.ok, str(found)
    assert diagnose(lake.spark, lake.catalog).ok, "it tries the key of new tables"


def test_errors_of_sql_are_typed_on_request(hadoop: Lake) -> None:
    create = f"CREATE TABLE {hadoop.table()} (id INT) TBLPROPERTIES ('encryption.key-id'='nobody')"
    with pytest.raises(KeyNotFoundError, match="nobody") as caught, typed_errors():
        hadoop.sql(create)
    assert "k1" in caught.value.hint
    with pytest.raises(AnalysisException), typed_errors():
        hadoop.sql("SELECT no_such_column")


def failed(found: DoctorReport) -> list[str]:
    assert not found.ok
    return [step.name for step in found.steps if step.status.value == "failed"]


def hint(found: DoctorReport) -> str:
    (step,) = [step for step in found.steps if step.status.value == "failed"]
    return " ".join([step.detail, step.hint])


def test_a_key_that_is_not_there(hadoop: Lake) -> None:
    store = hadoop.world.keystore.kms()
    with pytest.raises(KeyNotFoundError, match="no-such-key"):
        store.check(hadoop.spark, hadoop.catalog, "no-such-key")
    with pytest.raises(ConfigurationError, match="and this Keystore has /other"):
        replace(store, path="/other").check(hadoop.spark, hadoop.catalog, "k1")
    found = diagnose(hadoop.spark, hadoop.catalog, key_ids=["k1", "no-such-key"])
    assert failed(found) == [KEY]
    assert "no-such-key" in str(found)
    assert "✗ " in str(found)


def test_a_wrong_password(hadoop: Lake, tmp_path_factory: pytest.TempPathFactory) -> None:
    password = secret_file(tmp_path_factory.mktemp("wrong") / "password", "not-the-password-2718")
    lake = hadoop.with_options({"encryption.kms.keystore.password-file": str(password)})
    found = diagnose(lake.spark, lake.catalog, key_ids=["k1"])
    assert failed(found) == [LOGIN]
    assert "not-the-password" not in str(found)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encryption.kms-type": "hsm9000"}, "Unknown KMS type 'hsm9000'"),
        nightly({"encryption.kms.retry.max-attempts": "0"}, "encryption.kms.retry.max-attempts"),
        nightly({"encryption.kms.keystore.path": "/no/such.p12"}, "/no/such.p12"),
    ],
    ids=str,
)
def test_wrong_settings(hadoop: Lake, options: dict[str, str], says: str) -> None:
    lake = hadoop.with_options(options)
    found = diagnose(lake.spark, lake.catalog, key_ids=["k1"])
    assert failed(found) == [CATALOG]
    (step,) = [step for step in found.steps if step.name == CATALOG]
    assert says in step.detail
    assert step.hint


@pytest.mark.nightly
@pytest.mark.parametrize("start", [start_hadoop_kms, start_ranger_kms])
def test_a_hadoop_kms(hadoop: Lake, tmp_path: Path, start: Callable[[Path], Any]) -> None:
    """A real one: all is well, then no key, no right to use it, and nobody there."""
    server = start(tmp_path / "kms")
    try:
        kms = HadoopKms(f"kms://http@127.0.0.1:{server.port}/kms", user=ADMIN)
        kms.create_key("sales")
        keystore = [name for name in hadoop.world.ours("hadoop") if "keystore." in name]
        own = {**replace(kms, user=USER).properties(), "encryption.kms.retry.max-attempts": "1"}
        lake = hadoop.with_options(own, without=keystore)
        found = diagnose(lake.spark, lake.catalog, key_ids=["sales"])
        assert found.ok, str(found)
        replace(kms, user=USER).check(lake.spark, lake.catalog, "sales")
        missing = diagnose(lake.spark, lake.catalog, key_ids=["nobody"])
        assert failed(missing) == [KEY]
        assert "hadoop key create nobody" in hint(missing)
        server.deny(True)
        denied = diagnose(lake.spark, lake.catalog, key_ids=["sales"])
        assert failed(denied) == [PERMISSION]
        assert "GENERATE_EEK" in hint(denied)
    finally:
        server.stop()
    assert failed(diagnose(lake.spark, lake.catalog, key_ids=["sales"])) == [NETWORK]


@pytest.mark.parametrize("name", ["spark_catalog", "no_such_catalog"])
def test_other_catalogs(hadoop: Lake, name: str) -> None:
    found = diagnose(hadoop.spark, name, key_ids=["k1"])
    if name == "spark_catalog":  # ours, in this session
        assert found.ok, str(found)
    else:
        assert failed(found) == [CATALOG]
