"""What both tables must agree on."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from twin.operations.base import Operation
from twin.tables import Difference, Pair, Phase, Side
from twin.values import literal

# What is about encryption the twin has not, nor a folder for signed metadata.
# A REST server adds when a table was created that is in a transaction, as an encrypted one is.
OWN = ("encryption.", "format-version", "write.metadata.path", "created-at")
# Until the purge ours keeps files that nothing else would.
UNTIL_PURGE = ("gc.enabled", "write.metadata.previous-versions-max")


@dataclass(frozen=True)
class Shown:
    """What a table's metadata says."""

    metadata: dict[str, Any]

    def current(self, every: str, which: str, key: str) -> Any:
        return next(o for o in self.metadata[every] if o[key] == self.metadata[which])

    @property
    def schema(self) -> Any:
        schema = self.current("schemas", "current-schema-id", "schema-id")
        return {k: v for k, v in schema.items() if k != "schema-id"}

    @property
    def spec(self) -> Any:
        return self._fields("partition-specs", "default-spec-id", "spec-id")

    @property
    def order(self) -> Any:
        return self._fields("sort-orders", "default-sort-order-id", "order-id")

    def _fields(self, every: str, which: str, key: str) -> list[dict[str, Any]]:
        fields = self.current(every, which, key)["fields"]
        return [{k: v for k, v in field.items() if k != "field-id"} for field in fields]

    @property
    def snapshots(self) -> list[int]:
        return [one["snapshot-id"] for one in self.metadata.get("snapshots", ())]

    def columns_at(self, snapshot: int) -> Any:
        """The columns that a snapshot shows when it is read by its id."""
        found = next(o for o in self.metadata["snapshots"] if o["snapshot-id"] == snapshot)
        schemas = {o["schema-id"]: o["fields"] for o in self.metadata["schemas"]}
        return schemas[found.get("schema-id", self.metadata["current-schema-id"])]

    @property
    def refs(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.metadata.get("refs", {})
        return found

    def properties(self, phase: Phase) -> dict[str, str]:
        left = UNTIL_PURGE if phase is Phase.SWITCHED else ()
        every = self.metadata["properties"].items()
        return {k: v for k, v in every if not k.startswith(OWN) and k not in left}


Rows = dict[str, Counter[tuple[str, int | None, int | None]]]


@dataclass
class Agreed:
    """Compares both after each step."""

    pair: Pair
    before: tuple[Rows, Rows] | None = None
    rows: tuple[Rows, Rows] = ({}, {})
    heads: dict[str, tuple[int, int]] = field(default_factory=dict)

    def check(
        self, now: tuple[Shown, Shown], every_snapshot: bool = False, only_new: bool = False
    ) -> None:
        """What both have now.

        Args:
            now: their metadata, the twin's first.
            every_snapshot: the rows of all of them, and not only of branches and tags.
            only_new: rows are not read again of branches and tags that are where they were, nor twice of main.
        """
        pair = self.pair
        twin, ours = now
        same("schema", twin.schema, ours.schema)
        same("partition spec", twin.spec, ours.spec)
        same("sort order", twin.order, ours.order)
        same("properties", twin.properties(pair.phase), ours.properties(pair.phase))
        same(
            "branches and tags",
            {name: without_id(ref) for name, ref in twin.refs.items()},
            {name: without_id(ref) for name, ref in ours.refs.items()},
        )
        heads = {
            literal(name): (ref["snapshot-id"], ours.refs[name]["snapshot-id"])
            for name, ref in twin.refs.items()
            if not only_new or name != "main"
        }
        old = {name for name in heads if only_new and heads[name] == self.heads.get(name)}
        self.heads = heads
        at = {name: (name, name) for name in heads if name not in old}
        if every_snapshot:
            at |= {f"snapshot {i}": (str(i), str(j)) for i, j in pair.snapshots}
        rows = shown(pair, pair.twin, 0, at), shown(pair, pair.ours, 1, at)
        for new, known in zip(rows, self.rows, strict=True):
            new.update({name: known[name] for name in old})
        self.rows = rows
        for name in rows[0]:
            same(f"rows of {name}", contents(rows[0][name]), contents(rows[1][name]))
        if pair.version == 3:
            self.row_ids(rows)

    def row_ids(self, rows: tuple[Rows, Rows]) -> None:
        """Rows have ids of their own, and as many keep theirs in a step as in the twin.

        The ids themselves may differ once encrypt_table or decrypt_table has copied the rows.
        """
        for name in rows[1]:
            ids = [i for (_, i, _), n in rows[1][name].items() for _ in range(n)]
            theirs = [i for (_, i, _), n in rows[0][name].items() for _ in range(n)]
            if None not in theirs and (None in ids or len(set(ids)) != len(ids)):
                raise Difference(f"row ids of {name}: {sorted(map(str, ids))}")
            if self.pair.portable and None not in theirs:
                same(f"row ids of {name}", rows[0][name], rows[1][name])
        before, self.before = self.before, rows
        if before is None:
            return
        for name in rows[1].keys() & before[1].keys() & before[0].keys():
            changes = [changed(old[name], new[name]) for old, new in zip(before, rows, strict=True)]
            if None not in changes:
                same(f"how many row ids of {name} are gone, and are new", *changes)


def changed(old: Counter[Any], new: Counter[Any]) -> tuple[int, int] | None:
    """How many row ids are gone, and how many are new; None where rows had none."""
    one, two = ({i for _, i, _ in rows} for rows in (old, new))
    return None if None in one | two else (len(one - two), len(two - one))


def without_id(ref: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in ref.items() if key != "snapshot-id"}


def contents(rows: Iterable[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, count in Counter(rows).items():
        found[key[0]] += count
    return found


def shown(pair: Pair, side: Side, i: int, at: dict[str, tuple[str, str]]) -> Rows:
    """The rows of each branch, tag or snapshot, in one query."""
    ids = "_row_id, _last_updated_sequence_number" if pair.version == 3 else "NULL, NULL"
    queries = [
        f"SELECT {literal(name)}, to_json(struct(*), map('ignoreNullFields', 'false')), {ids} "
        f"FROM {side.table} VERSION AS OF {version[i]}"
        for name, version in at.items()
    ]
    queries.append(
        f"SELECT 'now', to_json(struct(*), map('ignoreNullFields', 'false')), {ids} FROM {side.table}"
    )
    found: Rows = {name: Counter() for name in (*at, "now")}
    for name, row, row_id, number in side.sql(" UNION ALL ".join(queries)):
        found[name][row, row_id, number] += 1
    return found


def same(what: str, twin: Any, ours: Any) -> None:
    if twin != ours:
        if isinstance(twin, Counter):
            twin, ours = twin - ours, ours - twin
        raise Difference(f"{what}:\n  twin {_text(twin)}\n  ours {_text(ours)}")


def _text(value: Any) -> str:
    if isinstance(value, Counter):
        return str(dict(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def shown_by(pair: Pair) -> tuple[Shown, Shown]:
    """The metadata of both, the twin's first."""
    return Shown(pair.twin.metadata()), Shown(pair.ours.metadata())


def pair_up(
    pair: Pair, before: tuple[Shown, Shown], now: tuple[Shown, Shown], operation: Operation
) -> None:
    """Notes which new snapshots show the same, and that those the twin still has are there in ours."""
    twin, ours = now
    new = [
        [i for i in after.snapshots if i not in then.snapshots]
        for after, then in zip(now, before, strict=True)
    ]
    if operation.by_layout and pair.relaid and not all(new):
        for side, made in zip((pair.twin, pair.ours), new, strict=True):
            if not made and side.most_manifests() > 1:
                raise Difference(f"{operation.named()} did nothing to {side.table}")
        new = [[], []]
    elif operation.ours_alone:
        new = [[], []]
    elif len(new[0]) != len(new[1]):
        raise Difference(f"new snapshots: twin {len(new[0])}, ours {len(new[1])}")
    pairs = [*pair.snapshots, *zip(*new, strict=True)]
    for name in twin.refs.keys() & ours.refs.keys():
        heads = twin.refs[name]["snapshot-id"], ours.refs[name]["snapshot-id"]
        # encrypt_table gives a branch the columns of now, where the twin's snapshot has those of then
        if heads not in pairs and twin.columns_at(heads[0]) == ours.columns_at(heads[1]):
            pairs.append(heads)
    left = [one for one in pairs if one[0] in twin.snapshots and one[1] in ours.snapshots]
    # reencrypt_table gives a branch a snapshot of its own: the earlier one may expire, which shows the same
    gone = {one for one, _ in pairs} & set(twin.snapshots) - {one for one, _ in left}
    if gone:
        raise Difference(f"snapshots that the twin still has are gone in ours: {gone}")
    pair.snapshots[:] = left
