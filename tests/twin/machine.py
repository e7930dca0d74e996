"""A history: hypothesis chooses operations, runs them on both tables, and shrinks what makes these differ."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto._names import quoted
from twin.agreed import Agreed, Shown, pair_up
from twin.operations import DANGEROUS, EVERY, Draw, Operation
from twin.proof import CHANGES, no_plaintext, planted_change_is_found, verified
from twin.tables import Pair, Phase, Refused, Side, location_of
from twin.tally import Tally
from twin.values import COLUMN_NAMES, PLAIN_TABLE_NAMES, TABLE_NAMES, Column


class History(RuleBasedStateMachine):
    """One history on one catalog; a test makes a class of it for each."""

    spark: ClassVar[SparkSession]
    kind: ClassVar[str]
    ours: ClassVar[str]
    namespace: ClassVar[str]
    folder: ClassVar[Path]
    tally: ClassVar[Tally]
    count: ClassVar[int] = 0

    pair: Pair
    agreed: Agreed
    failed = False

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        draw = Draw(data)
        History.count += 1
        self.tally.histories += 1
        self.seen: dict[Path, tuple[int, int]] = {}
        name = draw.pick(PLAIN_TABLE_NAMES if self.kind == "hive" else TABLE_NAMES)
        name = name.format(n=History.count)
        self.planted = draw.pick(CHANGES) if draw.flag() else None, draw.pick(range(60))
        sides = [Side(self.spark, catalog, self.namespace, name) for catalog in (self.ours, TWIN)]
        version = draw.pick([3, 3, 3, 2, 2, 1])
        encrypted = draw.flag() and version == 3
        names = [draw.pick(("id", "ID x", "i.d", "ид")), draw.pick(COLUMN_NAMES), "part"]
        columns = [
            Column(name, kind, role)
            for name, kind, role in zip(
                names, ("INT", "STRING", "STRING"), ("id", "note", "part"), strict=True
            )
        ]
        self.pair = Pair(
            self.kind,
            *sides,
            folder=self.folder / uuid.uuid4().hex[:8],
            columns=columns,
            phase=Phase.ENCRYPTED if encrypted else Phase.PLAIN,
            version=version,
        )
        self.agreed = Agreed(self.pair)
        with self.told():
            self.create(draw)
            self.pair.folders.append(location_of(self.pair.ours.metadata()))

    def create(self, draw: Draw) -> None:
        pair = self.pair
        columns = ", ".join(f"{column.sql} {column.type}" for column in pair.columns)
        properties = {"format-version": str(pair.version)}
        if pair.version > 1 and draw.flag():
            properties |= {
                f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")
            }
        partition = ""
        if draw.flag():
            pair.partitioned.append("part")
            partition = f"PARTITIONED BY ({quoted('part')})"
        words = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        pair.both(
            f"CREATE TABLE {{t}} ({columns}) USING iceberg {partition} TBLPROPERTIES ({words}{{key}})",
            key=("", ", 'encryption.key-id'='k1'" if pair.encrypted else ""),
        )

    @contextmanager
    def told(self) -> Iterator[None]:
        """A failure shows what a person can paste."""
        try:
            yield
        except Refused:
            raise
        except Exception as error:
            self.failed = True
            text = str(error)[:6000]
            raise AssertionError("\n".join([text, "", *self.pair.script])) from error

    def step(self, operation: Operation, draw: Draw) -> None:
        """One operation, on the twin and on ours, and all that must hold after it."""
        pair, name = self.pair, operation.named()
        before = tuple(Shown(side.metadata()).snapshots for side in (pair.twin, pair.ours))
        pair.script.append(f"# {name}")
        self.tally.steps += 1
        with self.told():
            try:
                operation.run(pair, draw)
                self.tally.reached[name] += 1
            except Refused as refused:
                pair.script.append(f"# both refuse it: {str(refused).splitlines()[0]}")
                self.tally.refused[name] += 1
            if operation.ours_alone:
                pair.portable = False
            pair_up(pair, (before[0], before[1]), operation.ours_alone)
            self.agreed.check()
            no_plaintext(pair, self.seen)
            verified(pair)

    @rule(data=st.data())
    def dangerous(self, data: Any) -> None:
        """A sequence that is known to be dangerous, as far as it can be run now."""
        draw = Draw(data)
        for kind in draw.pick(DANGEROUS):
            operation = kind()
            if self.possible(operation):
                self.step(operation, draw)

    def possible(self, operation: Operation) -> bool:
        return self.pair.phase in operation.phases and operation.ready(self.pair)

    @rule()
    def look(self) -> None:
        self.look_at_all()

    def look_at_all(self) -> None:
        """Every snapshot, every byte."""
        with self.told():
            self.agreed.check(every_snapshot=True)
            verified(self.pair, "deep")

    def teardown(self) -> None:
        """In the end all is looked at once more; then, in a share of the histories, a file is changed."""
        if not hasattr(self, "pair"):
            return
        try:
            if not self.failed:
                self.look_at_all()
                self.plant()
        finally:
            self.pair.remove()

    def plant(self) -> None:
        how, number = self.planted
        with self.told():
            done = planted_change_is_found(self.pair, how, number) if how else None
        if done:
            self.tally.planted[done] += 1


TWIN = "stock_hadoop"


def add_rule(operation: type[Operation]) -> None:
    """Makes it one of those that hypothesis chooses from."""

    def run(self: History, data: Any) -> None:
        self.step(operation(), Draw(data))

    run.__name__ = operation.named()
    can = precondition(lambda self: hasattr(self, "pair") and self.possible(operation()))
    setattr(History, operation.named(), can(rule(data=st.data())(run)))


for every in EVERY:
    add_rule(every)
