"""A history: operations are run on both tables, chosen by hypothesis or of a plan; what differs is shrunk."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto._names import quoted
from twin.agreed import Agreed, Shown, pair_up, shown_by
from twin.operations import DANGEROUS, EVERY, Draw, Operation
from twin.proof import CHANGES, no_plaintext, planted_change_is_found, verified
from twin.tables import Pair, Phase, Refused, Side, location_of
from twin.tally import Tally
from twin.values import COLUMN_NAMES, PLAIN_TABLE_NAMES, TABLE_NAMES, Column


class History:
    """One history on one catalog; a test makes a class of it for each."""

    spark: ClassVar[SparkSession]
    kind: ClassVar[str]
    ours: ClassVar[str]
    namespace: ClassVar[str]
    folder: ClassVar[Path]
    tally: ClassVar[Tally]
    thorough: ClassVar[bool] = True
    """Whether each step ends with verification and all branches and tags, or only the history."""
    count: ClassVar[int] = 0

    pair: Pair
    agreed: Agreed
    now: tuple[Shown, Shown]
    failed = False

    def begin(
        self,
        draw: Draw,
        encrypted: bool | None = None,
        version: int | None = None,
        partitioned: bool | None = None,
    ) -> None:
        """Makes both tables; what is not said is so in some histories."""
        History.count += 1
        self.tally.histories += 1
        self.seen: dict[Path, tuple[int, int]] = {}
        name = draw.pick(PLAIN_TABLE_NAMES if self.kind == "hive" else TABLE_NAMES)
        name = name.format(n=History.count)
        self.planted = draw.pick(CHANGES) if draw.flag() else None, draw.pick(range(60))
        sides = [
            Side(self.spark, catalog, f"{self.namespace}_{whose}", name)
            for catalog, whose in ((self.ours, "ours"), (TWIN, "twin"))
        ]
        if version is None:
            version = 3 if encrypted else draw.pick([3, 3, 3, 2, 2, 1])
        if encrypted is None:
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
            self.create(draw, draw.flag() if partitioned is None else partitioned)
            self.now = shown_by(self.pair)
            self.pair.folders.append(location_of(self.now[1].metadata))

    def create(self, draw: Draw, partitioned: bool) -> None:
        pair = self.pair
        columns = ", ".join(f"{column.sql} {column.type}" for column in pair.columns)
        properties = {"format-version": str(pair.version)}
        if pair.version > 1 and draw.flag():
            properties |= {
                f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")
            }
        partition = ""
        if partitioned:
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
        before = self.now
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
                pair.portable, pair.relaid = False, True
            self.now = shown_by(pair)
            pair_up(pair, before, self.now, operation)
            self.agreed.check(self.now, only_new=not self.thorough)
            no_plaintext(pair, self.seen)
            if self.thorough:
                verified(pair)

    def follow(self, plan: Iterable[type[Operation]], draw: Draw) -> None:
        """Those of the plan that can be run when their turn comes."""
        for kind in plan:
            if self.possible(operation := kind()) and draw.is_kept():
                self.step(operation, draw)

    def possible(self, operation: Operation) -> bool:
        return self.pair.phase in operation.phases and operation.ready(self.pair)

    def look_at_all(self) -> None:
        """Every snapshot, every byte."""
        with self.told():
            self.agreed.check(shown_by(self.pair), every_snapshot=True)
            verified(self.pair, deep=True)

    def end(self) -> None:
        """All is looked at once more; then, in a share of the histories, a file is changed."""
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


class RandomHistory(History, RuleBasedStateMachine):
    """Hypothesis chooses each operation."""

    @initialize(data=st.data())
    def create_both(self, data: Any) -> None:
        self.begin(Draw(data))

    @rule(data=st.data())
    def dangerous(self, data: Any) -> None:
        """A sequence that is known to be dangerous, as far as it can be run now."""
        draw = Draw(data)
        self.follow(draw.pick(DANGEROUS), draw)

    @rule()
    def look(self) -> None:
        self.look_at_all()

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.end()


def add_rule(operation: type[Operation]) -> None:
    """Makes it one of those that hypothesis chooses from."""

    def run(self: RandomHistory, data: Any) -> None:
        self.step(operation(), Draw(data))

    run.__name__ = operation.named()
    can = precondition(lambda self: hasattr(self, "pair") and self.possible(operation()))
    setattr(RandomHistory, operation.named(), can(rule(data=st.data())(run)))


for every in EVERY:
    add_rule(every)
