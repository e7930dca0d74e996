"""Iceberg's procedures that keep a table in order, with their options."""

import os
import time

from twin.operations.base import COLLECTING, Draw, Operation
from twin.tables import Pair, location_of

ALL = "TIMESTAMP '2999-01-01 00:00:00'"


def options(draw: Draw, *pairs: str) -> str:
    """Some of them, as a procedure takes them."""
    chosen = [pair for pair in pairs if draw.flag()]
    words = ", ".join(f"'{word}'" for pair in chosen for word in pair.split("="))
    return f"options => map({words})" if words else ""


class RewriteDataFiles(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        roles = pair.by_role
        strategy = draw.pick(
            [
                "",
                f"strategy => 'sort', sort_order => '{roles['id'].sql} DESC NULLS LAST'",
                f"strategy => 'sort', sort_order => 'zorder({roles['id'].sql}, {roles['id'].sql})'",
            ]
        )
        if "'" in roles["id"].name:  # Iceberg's parser of orders takes no quote in a name
            strategy = ""
        some = options(
            draw,
            "rewrite-all=true",
            "use-starting-sequence-number=false",
            "partial-progress.enabled=true",
            "remove-dangling-deletes=true",
            "delete-file-threshold=1",
            "min-input-files=2",
            "rewrite-job-order=files-desc",
        )
        pair.call("rewrite_data_files", ", ".join(filter(None, [strategy, some])))


class RewriteManifests(Operation):
    by_layout = True

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.call("rewrite_manifests", draw.pick(["", "use_caching => true"]))


class RewritePositionDeletes(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        pair.call("rewrite_position_delete_files", options(draw, "rewrite-all=true"))


class ExpireAll(Operation):
    """All that no branch or tag needs."""

    phases = COLLECTING

    def run(self, pair: Pair, draw: Draw) -> None:
        more = draw.pick(["", ", stream_results => true", ", clean_expired_metadata => true"])
        pair.call("expire_snapshots", f"older_than => {ALL}, retain_last => 1{more}")


class ExpireSome(Operation):
    phases = COLLECTING

    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots)

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.call("expire_snapshots", "snapshot_ids => array({at})", at=draw.pick(pair.snapshots))


class RemoveOrphans(Operation):
    """All files are as if from two days ago."""

    phases = COLLECTING

    def run(self, pair: Pair, draw: Draw) -> None:
        before = time.time() - 2 * 86400
        for side in (pair.twin, pair.ours):
            for path in location_of(side.metadata()).rglob("*"):
                os.utime(path, (before, before))
        yesterday = pair.spark.sql("SELECT cast(now() - INTERVAL 25 HOURS AS STRING)").collect()
        more = draw.pick(["", ", prefix_listing => true"])
        pair.call("remove_orphan_files", f"older_than => TIMESTAMP '{yesterday[0][0]}'{more}")


class ComputeStatistics(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        pair.call(draw.pick(["compute_table_stats", "compute_partition_stats"]))


MAINTENANCE: list[type[Operation]] = [
    RewriteDataFiles,
    RewriteManifests,
    RewritePositionDeletes,
    ExpireAll,
    ExpireSome,
    RemoveOrphans,
    ComputeStatistics,
]
