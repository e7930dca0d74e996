"""Branches, tags, write-audit-publish and time travel."""

import time

import pytest
from harness.files import MARKER
from harness.jars import BUILT
from harness.lake import Lake

pytestmark = pytest.mark.catalogs("hive")


def current_snapshot(lake: Lake, table: str) -> int:
    return int(lake.value(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'"))


def test_branches_and_tags(lake: Lake) -> None:
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2])
    lake.run(f"ALTER TABLE {table} CREATE TAG first RETAIN 365 DAYS")
    lake.run(f"ALTER TABLE {table} CREATE BRANCH work")
    lake.insert(f"{table}.branch_work", [3])
    lake.run(f"DELETE FROM {table}.branch_work WHERE id = 1")
    assert lake.ids(table) == [1, 2]
    assert lake.ids(table, "VERSION AS OF 'work'") == [2, 3]
    lake.insert(table, [4])
    assert lake.ids(table, "VERSION AS OF 'first'") == [1, 2]
    assert lake.ids(f"{table}.tag_first") == [1, 2]
    lake.run(f"ALTER TABLE {table} REPLACE TAG first RETAIN 30 DAYS")
    lake.run(f"ALTER TABLE {table} DROP BRANCH work")
    lake.run(f"ALTER TABLE {table} DROP TAG first")
    assert {row.name for row in lake.run(f"SELECT name FROM {table}.refs")} == {"main"}


@pytest.mark.nightly
def test_time_travel(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    first = current_snapshot(lake, table)
    time.sleep(0.01)
    between = lake.value("SELECT cast(current_timestamp() AS STRING)")
    lake.insert(table, [2])
    lake.run(f"INSERT OVERWRITE {table} VALUES (3, '{MARKER}', 'p')")
    assert lake.ids(table) == [3]
    assert lake.ids(table, f"VERSION AS OF {first}") == [1]
    assert lake.ids(table, f"TIMESTAMP AS OF '{between}'") == [1]
    if BUILT.spark != "3.5":  # which ignores the option here
        frame = lake.spark.read.option("versionAsOf", first).table(table)
        assert [row.id for row in frame.collect()] == [1]
    frame = lake.spark.read.option("start-snapshot-id", first).format("iceberg")
    last = lake.value(f"SELECT parent_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert [row.id for row in frame.option("end-snapshot-id", last).load(table).collect()] == [2]


@pytest.mark.nightly
def test_wap_by_id(lake: Lake) -> None:
    table = lake.insert(lake.create(write_wap_enabled="true"), [1])
    lake.spark.conf.set("spark.wap.id", "audit-1")
    try:
        lake.insert(table, [2])
    finally:
        lake.spark.conf.unset("spark.wap.id")
    assert lake.ids(table) == [1]
    lake.call("publish_changes", arguments="wap_id => 'audit-1'")
    assert lake.ids(table) == [1, 2]


def test_wap_branch(lake: Lake) -> None:
    table = lake.insert(lake.create(write_wap_enabled="true"), [1])
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.spark.conf.set("spark.wap.branch", "audit")
    try:
        lake.insert(table, [2])
        assert lake.ids(table) == [1, 2]
    finally:
        lake.spark.conf.unset("spark.wap.branch")
    assert lake.ids(table) == [1]
    lake.call("fast_forward", arguments="branch => 'main', to => 'audit'")
    assert lake.ids(table) == [1, 2]
