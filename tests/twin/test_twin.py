"""Histories: by day of a plan and with a fixed seed; by night all plans, and new random ones for as long as is set."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.lake import Lake
from harness.world import KINDS, catalog_conf
from hypothesis import given, seed
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from twin.machine import TWIN, History, RandomHistory
from twin.operations import DANGEROUS, EVERY, Draw
from twin.planned import BY_DAY, Plan, follow, goal, plans
from twin.searching import settings_of
from twin.tally import Tally

SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "1"))  # another each night
FIXED = int(os.environ.get("ICEBERG_CRYPTO_TWIN_SEED", "1"))
MINUTES = float(os.environ.get("ICEBERG_CRYPTO_TWIN_MINUTES", "3"))
STEPS = int(os.environ.get("ICEBERG_CRYPTO_TWIN_STEPS", "12"))


class Run:
    """Histories on one catalog."""

    def __init__(self, lake: Lake, folder: Path):
        self.tally = Tally()
        ours = f"twin_{lake.kind}"  # its statistics are encrypted, not refused
        options = {**lake.world.ours(lake.kind), "encryption.statistics": "encrypt"}
        implementation = str(lake.spark.conf.get(f"spark.sql.catalog.{lake.catalog}"))
        for key, value in catalog_conf(ours, implementation, options).items():
            lake.spark.conf.set(key, value)
        for catalog, whose in ((ours, "ours"), (TWIN, "twin")):  # on hadoop they share a warehouse
            lake.sql(f"CREATE NAMESPACE {catalog}.{lake.namespace}_{whose}")
        attributes = {
            "spark": lake.spark,
            "kind": lake.kind,
            "ours": ours,
            "namespace": lake.namespace,
            "folder": folder,
            "tally": self.tally,
        }
        name = lake.kind.title()
        self.random: Any = type(f"RandomHistoryOn{name}", (RandomHistory,), attributes)
        self.planned: Any = type(f"HistoryOn{name}", (History,), attributes)

    def histories(self, number: int, drawn: int) -> None:
        """Random ones."""
        run_state_machine_as_test(seed(drawn)(self.random), settings=settings_of(number, STEPS))

    def follow(self, sequences: Sequence[Plan], operations: Plan) -> None:
        """One history of each plan, with the fixed seed."""
        for number, plan in enumerate(plans(sequences, operations, self.tally)):
            self.one_of(plan, number)

    def one_of(self, plan: Plan, number: int) -> None:
        @seed(FIXED + number)
        @settings_of(2, STEPS)  # hypothesis begins with what is simplest, which does nothing
        @given(st.data())
        def run(data: Any) -> None:
            follow(self.planned(), plan, Draw(data), number)

        run()


@pytest.fixture(scope="module")
def together() -> Tally:
    """Of all catalogs by day."""
    return Tally()


Record = Callable[[str, object], None]


@pytest.mark.parametrize("lake", BY_DAY, indirect=True)
@pytest.mark.catalogs("jdbc")
def test_histories_by_day(
    lake: Lake, tmp_path: Path, record_property: Record, together: Tally
) -> None:
    """A share of the dangerous sequences, and then what these do not reach."""
    run = Run(lake, tmp_path)
    run.planned.thorough = False
    try:
        run.follow(BY_DAY[lake.kind], goal(lake.kind))
    finally:
        together.add(run.tally)
        never = ", ".join(together.never) or "nothing"
        record_property(
            "counts", f"twin on {lake.kind}, seed {FIXED}: {run.tally}\nnever done so far: {never}"
        )


@pytest.mark.nightly
@pytest.mark.catalogs()
def test_every_sequence(lake: Lake, tmp_path: Path, record_property: Record) -> None:
    run = Run(lake, tmp_path)
    try:
        run.follow(DANGEROUS, EVERY)
    finally:
        record_property("counts", f"twin on {lake.kind}, seed {FIXED}: {run.tally}")


@pytest.mark.nightly
@pytest.mark.catalogs()
def test_new_histories(lake: Lake, tmp_path: Path, record_property: Record) -> None:
    run, until = Run(lake, tmp_path), time.monotonic() + 60 * MINUTES
    drawn = SEED + 1000 * KINDS.index(lake.kind)  # others on each catalog
    try:
        while time.monotonic() < until:
            drawn += 1
            run.histories(10, drawn)
    finally:
        record_property("counts", f"twin on {lake.kind}, seeds to {drawn}: {run.tally}")
