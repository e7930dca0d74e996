"""Tables while their KMS is away. On a real Vault behind a proxy that fails."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from doubles.faults import FaultProxy
from harness.files import ENCRYPTED_MAGIC, MARKER, everything_below, magic, secret_file
from harness.lake import COLUMNS, Lake
from servers.vault import VaultServer

from pyspark_iceberg_crypto import (
    IcebergCryptoError,
    decrypt_table,
    encrypt_table,
    prune_encryption_keys,
    purge_plaintext,
    reencrypt_table,
    repair_table,
    rotate_kek,
    rotate_master_key,
    verify_catalog,
    verify_table,
)

QUICK = {
    "encryption.kms.retry.max-attempts": "2",
    "encryption.kms.retry.initial-delay-ms": "10",
    "encryption.kms.retry.max-delay-ms": "20",
    "encryption.kms.call-timeout-ms": "2000",
    "encryption.kms.circuit-breaker.failures": "0",
    "encryption.kms.circuit-breaker.delay-ms": "50",
    "cache-enabled": "false",  # every statement loads its table again
}
SEALED = ("status", 503, {}, '{"errors":["Vault is sealed"]}')
NO_CACHE = {"encryption.kms.cache.ttl-ms": "0"}
# As on Hive and REST: no check of the metadata asks for a key.
UNSIGNED = {"encryption.metadata-authentication": "off"}


@pytest.fixture
def proxy(vault: VaultServer) -> Iterator[FaultProxy]:
    started = FaultProxy(vault.port).start()
    yield started
    started.stop()


@pytest.fixture
def options(vault: VaultServer, proxy: FaultProxy, tmp_path: Path) -> dict[str, str]:
    token = secret_file(tmp_path / "token", vault.root)
    return {
        "encryption.kms-type": "vault",
        "encryption.kms.vault.address": proxy.url,
        "encryption.kms.vault.token-file": str(token),
        **QUICK,
    }


@pytest.fixture
def lake(hadoop: Lake, options: dict[str, str]) -> Lake:  # one catalog is enough here
    keystore = [key for key in hadoop.world.ours("hadoop") if ".keystore." in key]
    return hadoop.with_options(options, without=keystore)


@pytest.fixture
def key(vault: VaultServer) -> str:
    return vault.make_key()


def new_session(lake: Lake, options: dict[str, str]) -> Lake:
    keystore = [key for key in lake.world.ours("hadoop") if ".keystore." in key]
    return lake.with_options(options, without=keystore)


def test_what_is_known_goes_on(lake: Lake, key: str, proxy: FaultProxy) -> None:
    """In an outage shorter than the cache's time to live, known tables are read and written."""
    table = lake.insert(lake.create(key=key), range(3))
    proxy.mode = "down"
    assert lake.ids(table) == [0, 1, 2]
    lake.insert(table, [3])
    lake.run(f"DELETE FROM {table} WHERE id = 0")
    assert lake.ids(table) == [1, 2, 3]
    assert lake.value(f"SELECT count(*) FROM {table}.snapshots") == 3


@pytest.mark.parametrize("mode", ["down", pytest.param("hang", marks=pytest.mark.nightly)])
def test_a_new_session_says_what_is_wrong_and_recovers(
    lake: Lake, key: str, proxy: FaultProxy, options: dict[str, str], mode: str
) -> None:
    lake.insert(lake.create(key=key), range(3))
    other = new_session(lake, {**options, "encryption.kms.call-timeout-ms": "300"})
    proxy.mode = mode  # type: ignore[assignment]
    error = other.refused(f"SELECT * FROM {other.table()}", "Vault", other.table(), "hint:")
    assert "KmsUnavailableException" in error
    proxy.mode = "pass"
    assert other.ids(other.table()) == [0, 1, 2]


def test_nothing_is_left_of_a_write_whose_kms_went_away(
    lake: Lake, key: str, proxy: FaultProxy, options: dict[str, str]
) -> None:
    """A stock client's table gets its KEK in the first INSERT's commit: the data files of that one go away."""
    lake = new_session(lake, {**options, **UNSIGNED})
    table = lake.table()
    lake.sql(
        f"CREATE TABLE {lake.table('t', 'stock_hadoop')} ({COLUMNS}) USING iceberg "
        f"TBLPROPERTIES ('encryption.key-id'='{key}', 'format-version'='3')"
    )
    before = everything_below(lake.warehouse)
    proxy.mode = ("status", 503, {}, '{"errors":["Vault is sealed"]}')
    insert = f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ 3L, 'x', 'p'"
    error = lake.refused(insert, "Vault", "sealed", table)
    assert "KmsUnavailableException" in error
    assert proxy.requests, "the commit asked the KMS"
    proxy.mode = "pass"
    assert everything_below(lake.warehouse) == before
    lake.insert(table, [4])
    assert lake.ids(table) == [4]


def test_nothing_is_written_when_the_table_cannot_be_opened(
    lake: Lake, key: str, proxy: FaultProxy, options: dict[str, str]
) -> None:
    """Without a cache each use of the KEK asks; the first is before an INSERT writes."""
    other = new_session(lake, {**options, **NO_CACHE, **UNSIGNED})
    table = other.insert(other.create(key=key), [1])
    proxy.forget()
    other.insert(table, [2])
    assert len(proxy.requests) == 4
    proxy.mode = "down"
    other.refused(f"INSERT INTO {table} VALUES (3, 'x', 'p')", "Vault", table)
    proxy.mode = "pass"
    assert other.ids(table) == [1, 2]


def test_a_verification_tells_what_it_could_not_check(
    lake: Lake, key: str, proxy: FaultProxy, options: dict[str, str]
) -> None:
    """A KMS that is away says nothing about files, and the table is not ok. Otherwise it is asked once for a KEK."""
    writer = new_session(lake, {**options, **UNSIGNED})
    table = writer.create(key=key)
    for one in range(3):
        writer.insert(table, [one])
    reader = new_session(lake, {**options, **UNSIGNED})
    proxy.forget()
    assert verify_table(lake.spark, reader.table(), deep=True, all_snapshots=True).ok
    assert sum("/decrypt/" in request for request in proxy.requests) == 1
    cut_off = new_session(lake, {**options, **UNSIGNED})
    proxy.mode = "down"
    report = verify_table(lake.spark, cut_off.table(), deep=True)
    proxy.mode = "pass"
    assert (report.ok, report.problem_count, report.unchecked_count) == (False, 0, 1)
    (problem,) = report.problems
    assert (problem.kind, problem.unchecked, problem.code) == ("manifest list", True, "unreadable")
    assert "Vault" in problem.problem and f"'{key}'" in problem.problem
    assert verify_table(lake.spark, cut_off.table(), deep=True).ok


@pytest.mark.parametrize("more", [UNSIGNED, {}], ids=["in a report", "in a load"])
def test_a_kms_that_was_away_for_a_moment(
    lake: Lake, vault: VaultServer, proxy: FaultProxy, options: dict[str, str], more: dict[str, str]
) -> None:
    """Of many tables, those that it kept from being verified are verified when it is back."""
    writer = new_session(lake, {**options, **more})
    for name in ("a", "b", "c"):
        writer.insert(writer.create(name, key=vault.make_key()), [1])
    own_login = {"encryption.kms.call-timeout-ms": "2002"}  # with equal settings it would be shared
    cut_off = new_session(lake, {**options, **more, **own_login})
    proxy.next = ["pass", "pass", *[SEALED] * 4]  # the login, one key, two attempts for each other
    name = f"{cut_off.catalog}.{cut_off.namespace}"
    found = verify_catalog(lake.spark, name, deep=True, threads=1)
    assert not proxy.next, "it was away"
    assert found.ok and len(found.reports) == 3, found


def test_a_key_that_stays_away_keeps_no_other_table_from_being_verified(
    lake: Lake, vault: VaultServer, proxy: FaultProxy, options: dict[str, str]
) -> None:
    writer = new_session(lake, options)
    keys = {name: vault.make_key() for name in ("a", "b", "c")}
    for name, key in keys.items():
        writer.insert(writer.create(name, key=key), [1])
    own_login = {"encryption.kms.call-timeout-ms": "2003"}  # with equal settings it would be shared
    cut_off = new_session(lake, {**options, **own_login})
    asked_for = dict.fromkeys(keys.values(), 0)

    def rule(asked: str, _: bytes) -> Any:
        """Of two keys, one stays away; the other is back while that one is tried again."""
        key = asked.rpartition("/")[2]
        if key not in asked_for or key == keys["a"]:
            return "pass"
        asked_for[key] += 1
        return "pass" if any(asked_for[one] > 7 for one in asked_for if one != key) else SEALED

    proxy.rule = rule
    found = verify_catalog(lake.spark, f"{cut_off.catalog}.{cut_off.namespace}")
    verified = {one.table.rpartition(".")[2] for one in found.reports if one.ok}
    assert "a" in verified and len(verified) == 2, found
    (left,) = found.not_checked
    assert "Vault is sealed" in left["problem"]


Operation = Callable[[Lake, str], Any]


def away_after(lake: Lake, proxy: FaultProxy, requests: int, operation: Operation) -> bool:
    """The KMS answers so many requests and no more: the table is as it was, or the operation had no need of more.

    An error after the commit says that it is one.
    """
    before, after_commit = metadata_of(lake), False
    proxy.next, proxy.mode = ["pass"] * requests, SEALED  # type: ignore[list-item, assignment]
    try:
        report = operation(lake, lake.table())
    except IcebergCryptoError as error:
        assert lake.table() in str(error) and "sealed" in str(error) and "hint:" in str(error)
        after_commit = "its rewrite has ended, and what it committed stays" in str(error)
    else:
        if getattr(report, "ok", True):
            return True
        assert "sealed" in str(
            report
        )  # that of repair_table, which tells what it could not look at
    finally:
        proxy.next, proxy.mode = [], "pass"
    assert (metadata_of(lake) != before) == after_commit
    return False


def metadata_of(lake: Lake) -> set[Path]:
    return set((lake.folder / "t" / "metadata").glob("*.metadata.json"))


def operations(key: str, other: str) -> dict[str, tuple[Operation, Sequence[int]]]:
    """In the order in which a table goes through them, and after how many requests the KMS goes away by day."""
    return {
        "encrypt_table": (lambda lake, t: encrypt_table(lake.spark, t, key), [8]),
        "reencrypt_table": (lambda lake, t: reencrypt_table(lake.spark, t), [2]),
        "rotate_master_key": (lambda lake, t: rotate_master_key(lake.spark, t, other), [6]),
        "rotate_kek": (lambda lake, t: rotate_kek(lake.spark, t, rewrap=True), [6]),
        "prune_encryption_keys": (lambda lake, t: prune_encryption_keys(lake.spark, t), []),
        "repair_table": (lambda lake, t: repair_table(lake.spark, t, confirm=True), []),
        "decrypt_table": (
            lambda lake, t: decrypt_table(lake.spark, t, confirm=True),
            [3],
        ),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("points", ["some", "all"])
def test_an_operation_whose_kms_goes_away_midway(
    lake: Lake,
    vault: VaultServer,
    proxy: FaultProxy,
    options: dict[str, str],
    key: str,
    points: str,
) -> None:
    """Each fails as a whole and is done when called again, whether before it copies, in its commit or after that."""
    table = lake.create(key=None)
    for i in range(2):
        lake.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ {i}L, '{MARKER}', 'p'")

    def session() -> Lake:  # no cache: each step asks the KMS
        return new_session(lake, {**options, **NO_CACHE})

    for name, (operation, by_day) in operations(key, vault.make_key()).items():
        before = everything_below(lake.folder)
        for requests in range(40) if points == "all" else [*by_day, 40]:
            if done := away_after(session(), proxy, requests, operation):
                break
            left = everything_below(lake.folder) - before
            kinds = {magic(path) for path in left if path.suffix in (".parquet", ".avro", ".bin")}
            assert kinds <= set(ENCRYPTED_MAGIC), f"{name} after {requests} requests: {left}"
            assert session().ids(lake.table(catalog=session().catalog)) == [0, 1]
        assert done, f"{name} failed after {requests} requests"
        fresh = session()
        assert fresh.ids(fresh.table()) == [0, 1]
        if name == "encrypt_table":
            purge_plaintext(lake.spark, fresh.table())
        if name != "decrypt_table":
            with verify_table(lake.spark, fresh.table(), deep=True) as report:
                assert report.ok, str(report)
