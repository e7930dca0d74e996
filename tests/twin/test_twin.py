"""Random histories: few with a fixed seed, and new ones for as long as is set."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.lake import Lake
from harness.world import catalog_conf
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from twin.machine import TWIN, History
from twin.tally import Tally

SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "1"))  # another each night
FIXED = int(os.environ.get("ICEBERG_CRYPTO_TWIN_SEED", "1"))
MINUTES = float(os.environ.get("ICEBERG_CRYPTO_TWIN_MINUTES", "30"))
HISTORIES = int(os.environ.get("ICEBERG_CRYPTO_TWIN_HISTORIES", "4"))
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
        for catalog in {ours, TWIN}:
            lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.{lake.namespace}_twin")
        attributes = {
            "spark": lake.spark,
            "kind": lake.kind,
            "ours": ours,
            "namespace": f"{lake.namespace}_twin",
            "folder": folder,
            "tally": self.tally,
        }
        self.machine = type("HistoryOn" + lake.kind.title(), (History,), attributes)

    def histories(self, number: int, drawn: int) -> None:
        run_state_machine_as_test(
            seed(drawn)(self.machine),
            settings=settings(
                max_examples=number,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
                verbosity=Verbosity.quiet,
                print_blob=False,
            ),
        )


@pytest.mark.nightly  # until its differences are settled
def test_fixed_histories(
    lake: Lake, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    run = Run(lake, tmp_path)
    try:
        run.histories(HISTORIES, FIXED)
    finally:
        record_property("counts", f"twin on {lake.kind}, seed {FIXED}: {run.tally}")


@pytest.mark.nightly
@pytest.mark.catalogs()
def test_new_histories(
    lake: Lake, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    run, drawn, until = Run(lake, tmp_path), SEED, time.monotonic() + 60 * MINUTES
    try:
        while time.monotonic() < until:
            drawn += 1
            run.histories(10, drawn)
    finally:
        record_property("counts", f"twin on {lake.kind}, seeds to {drawn}: {run.tally}")
