"""What an operation is, and what it draws."""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st

from pyspark_iceberg_crypto._names import quoted
from twin.tables import Pair, Phase

T = TypeVar("T")
_CHOICE = st.integers(0, 59)
_MOSTLY = st.integers(0, 99)
_ROWS = st.lists(st.integers(0, 19), min_size=1, max_size=6)


class Draw:
    """Arguments of an operation.

    What is drawn from never depends on the tables: a history repeats, and shrinks, though ids of snapshots differ.
    """

    def __init__(self, data: Any):
        self._draw = data.draw

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self._draw(_CHOICE) % len(choices)]

    def flag(self) -> bool:
        return bool(self._draw(st.booleans()))

    def is_kept(self) -> bool:
        """Of a step that may be left out: mostly, and not in what is simplest."""
        return bool(self._draw(_MOSTLY))

    def rows(self) -> list[int]:
        found: list[int] = self._draw(_ROWS)
        return found

    def row(self) -> int:
        return int(self._draw(st.integers(0, 19)))


class Operation:
    """What a user does: the same on both tables, or on ours alone where the twin shows no difference.

    Attributes:
        phases: when it can be done.
        ours_alone: it makes commits that the twin has not.
        by_layout: how manifests list the files decides whether it has anything to do, and ours list them in another
            way once it has had commits that the twin has not.
    """

    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    ours_alone: ClassVar[bool] = False
    by_layout: ClassVar[bool] = False

    def ready(self, pair: Pair) -> bool:
        return True

    def run(self, pair: Pair, draw: Draw) -> None:
        raise NotImplementedError

    @classmethod
    def named(cls) -> str:
        return cls.__name__


COLLECTING = frozenset({Phase.PLAIN, Phase.COPYING, Phase.ENCRYPTED})
"""In which files may be deleted: between encrypt_table and purge_plaintext, gc.enabled is false."""


def target(pair: Pair, draw: Draw) -> str:
    """The table, or a branch of it."""
    branch = draw.pick(["", "", "", *BRANCH_SLOTS])
    if not branch or not pair.branches:
        return "{t}"
    name = quoted("branch_" + pair.branches[int(branch) % len(pair.branches)])
    return "{t}." + name


BRANCH_SLOTS = ("0", "1")


def writer(pair: Pair, draw: Draw) -> str | None:
    """The catalog that ours is written through: stock Iceberg's on Hive, which encrypts there, too."""
    through = draw.pick([None, None, "stock_hive"])
    return through if pair.kind == "hive" and pair.phase is Phase.ENCRYPTED else None
