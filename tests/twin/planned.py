"""Histories of a plan: the sequences that are known to be dangerous, then operations that these have not reached."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from twin.machine import History
from twin.operations import BY_NAME, DANGEROUS, EVERY, Draw, Operation
from twin.proof import CHANGES
from twin.tables import Phase
from twin.tally import Tally

Plan = Sequence[type[Operation]]


def by_novelty() -> Iterator[Plan]:
    """The dangerous sequences; next comes the one that has most, by its length, of what is not in those before."""
    left, reached = list(DANGEROUS), set[type[Operation]]()
    while left:
        best = max(left, key=lambda plan: len(set(plan) - reached) / len(plan))
        left.remove(best)
        reached.update(best)
        yield best


# As many as fit into two minutes: on jdbc by day, on rest by night.
FIRST = list(islice(by_novelty(), 6))
BY_DAY = {"jdbc": FIRST[::2], "rest": FIRST[1::2]}
# How often it tries those that are left: some are refused, or not possible.
ATTEMPTS = 3
# What makes it likely that an operation is not refused.
BEFORE = {
    "Cherrypick": "Stage",
    "ExpireSome": "Insert",
    "FastForward": "CreateBranch Insert",
    "ReplaceRef": "CreateTag",
}


def goal(kind: str) -> list[type[Operation]]:
    """What a catalog tries to reach by day: what is in its sequences, and half of what is in none of the day's."""
    left = [operation for operation in EVERY if not any(operation in plan for plan in FIRST)]
    own = {operation for plan in BY_DAY[kind] for operation in plan}
    half = len(left) // 2
    own.update(left[:half] if kind == "jdbc" else left[half:])
    return [operation for operation in EVERY if operation in own]


def plans(sequences: Sequence[Plan], operations: Plan, tally: Tally) -> Iterator[Plan]:
    """The sequences; then the operations, as far as the run has not reached them by then."""
    yield from sequences
    for _ in range(ATTEMPTS):
        if missing := [kind for kind in operations if kind.named() not in tally.reached]:
            names = " ".join(f"{BEFORE.get(kind.named(), '')} {kind.named()}" for kind in missing)
            yield [BY_NAME[name] for name in ["InsertMany", *names.split()]]


def beginning(plan: Plan) -> dict[str, Any]:
    """The table to begin with, so that much of the plan can be done: what is of one phase first decides about it."""
    both = {Phase.PLAIN, Phase.ENCRYPTED}
    only = next((kind.phases for kind in plan if not both <= kind.phases), {Phase.ENCRYPTED})
    found: dict[str, Any] = {"encrypted": Phase.PLAIN not in only}
    if BY_NAME["Upgrade"] in plan:
        found["version"] = 2
    if BY_NAME["UpsertAsFlink"] in plan:
        found["partitioned"] = False
    return found


def follow(history: History, plan: Plan, draw: Draw, number: int) -> None:
    """One history. To shrink a failure, hypothesis leaves steps out, and makes arguments simpler."""
    if not draw.is_kept():
        return
    history.begin(draw, **beginning(plan))
    history.planted = CHANGES[number % len(CHANGES)], draw.pick(range(60))
    try:
        history.follow(plan, draw)
    finally:
        history.end()
