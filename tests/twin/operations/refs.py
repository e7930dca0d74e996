"""Branches, tags, write-audit-publish, and going back."""

from pyspark_iceberg_crypto._names import quoted
from twin.operations.base import Draw, Operation
from twin.operations.dml import values
from twin.tables import Pair
from twin.values import BRANCHES, literal


def unused(pair: Pair, draw: Draw) -> str:
    return draw.pick([name for name in BRANCHES if name not in (*pair.branches, *pair.tags)])


class _OfSnapshot(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots) and len(pair.branches) + len(pair.tags) < len(BRANCHES)


class CreateBranch(Operation):
    def ready(self, pair: Pair) -> bool:
        return len(pair.branches) + len(pair.tags) < len(BRANCHES)

    def run(self, pair: Pair, draw: Draw) -> None:
        name = unused(pair, draw)
        how = draw.pick(["", " RETAIN 365 DAYS", " WITH SNAPSHOT RETENTION 2 SNAPSHOTS"])
        pair.both(f"ALTER TABLE {{t}} CREATE BRANCH {quoted(name)}{how}")
        pair.branches.append(name)


class CreateBranchAt(_OfSnapshot):
    def run(self, pair: Pair, draw: Draw) -> None:
        name, at = unused(pair, draw), draw.pick(pair.snapshots)
        statement = f"ALTER TABLE {{t}} CREATE BRANCH {quoted(name)} AS OF VERSION {{at}}"
        pair.both(statement, at=at)
        pair.branches.append(name)


class CreateTag(_OfSnapshot):
    def run(self, pair: Pair, draw: Draw) -> None:
        name, at = unused(pair, draw), draw.pick(pair.snapshots)
        how = draw.pick(["", " RETAIN 30 DAYS"])
        pair.both(f"ALTER TABLE {{t}} CREATE TAG {quoted(name)} AS OF VERSION {{at}}{how}", at=at)
        pair.tags.append(name)


class DropRef(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.branches or pair.tags)

    def run(self, pair: Pair, draw: Draw) -> None:
        name = draw.pick([*pair.branches, *pair.tags])
        kind, names = ("BRANCH", pair.branches) if name in pair.branches else ("TAG", pair.tags)
        pair.both(f"ALTER TABLE {{t}} DROP {kind} {quoted(name)}")
        names.remove(name)


class ReplaceRef(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots and (pair.branches or pair.tags))

    def run(self, pair: Pair, draw: Draw) -> None:
        name, at = draw.pick([*pair.branches, *pair.tags]), draw.pick(pair.snapshots)
        kind = "BRANCH" if name in pair.branches else "TAG"
        pair.both(f"ALTER TABLE {{t}} REPLACE {kind} {quoted(name)} AS OF VERSION {{at}}", at=at)


class FastForward(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.branches)

    def run(self, pair: Pair, draw: Draw) -> None:
        names = ["main", draw.pick(pair.branches)]
        if draw.flag():
            names.reverse()
        pair.call("fast_forward", f"branch => {literal(names[0])}, to => {literal(names[1])}")


class Rollback(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots)

    def run(self, pair: Pair, draw: Draw) -> None:
        procedure = draw.pick(["rollback_to_snapshot", "set_current_snapshot"])
        pair.call(procedure, "snapshot_id => {at}", at=draw.pick(pair.snapshots))


class Cherrypick(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots)

    def run(self, pair: Pair, draw: Draw) -> None:
        last = draw.pick([True, True, False])  # what was just staged, as a rule
        at = pair.snapshots[-1] if last else draw.pick(pair.snapshots)
        pair.call("cherrypick_snapshot", "snapshot_id => {at}", at=at)


class Stage(Operation):
    """A snapshot that is not published: WAP by id, of an INSERT or of a DELETE."""

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.both("ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled'='true')")
        wap = f"audit-{pair.next()}"
        i = pair.by_role["id"].sql
        statement = draw.pick(
            [
                f"INSERT INTO {{t}} {values(pair, draw.rows())}",
                f"DELETE FROM {{t}} WHERE {i} = {draw.row()}",
            ]
        )
        with pair.configured("spark.wap.id", wap):
            pair.both(statement)
        pair.staged.append(wap)


class Publish(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.staged)

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.call("publish_changes", f"wap_id => '{draw.pick(pair.staged)}'")


class WriteToWapBranch(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        pair.both("ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled'='true')")
        with pair.configured("spark.wap.branch", BRANCHES[0]):
            pair.both(f"INSERT INTO {{t}} {values(pair, draw.rows())}")
        if BRANCHES[0] not in pair.branches:
            pair.branches.append(BRANCHES[0])


REFS: list[type[Operation]] = [
    CreateBranch,
    CreateBranchAt,
    CreateTag,
    DropRef,
    ReplaceRef,
    FastForward,
    Rollback,
    Cherrypick,
    Stage,
    Publish,
    WriteToWapBranch,
]
