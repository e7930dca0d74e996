"""What someone with write access to the storage can make metadata.json say: the files to be replaced, or removed."""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Changes = dict[Path, bytes | None]


@dataclass(frozen=True)
class Finds:
    """What an attacker finds in the storage, or makes. All metadata but `text` is a copy to edit."""

    file: Path  # the metadata.json in force
    text: bytes
    older: bytes  # the version before
    other: bytes  # of another table with the same master key
    own: bytes  # of the attacker's table, encrypted with a master key of theirs that has the same name
    plain: bytes  # of the attacker's plaintext table
    manifest: Path  # the newest of the table
    plain_manifest: bytes

    def edited(self, change: "Edit") -> Changes:
        metadata = json.loads(self.text)
        change(metadata, self)
        return {self.file: json.dumps(metadata).encode()}


Edit = Callable[[Json, Finds], object]


def current(metadata: Json) -> Json:
    snapshots: list[Json] = metadata["snapshots"]
    return next(s for s in snapshots if s["snapshot-id"] == metadata["current-snapshot-id"])


def past(metadata: Json) -> Json:
    """The second snapshot."""
    snapshot: Json = sorted(metadata["snapshots"], key=lambda s: s["sequence-number"])[1]
    return snapshot


def key(metadata: Json, key_id: str) -> Json:
    keys: list[Json] = metadata["encryption-keys"]
    return next(k for k in keys if k["key-id"] == key_id)


def kek(metadata: Json) -> Json:
    """The KEK of the current snapshot's manifest list."""
    return key(metadata, key(metadata, current(metadata)["key-id"])["encrypted-by-id"])


def point_to_older_list(m: Json, _: Finds) -> None:
    current(m).update({name: past(m)[name] for name in ("manifest-list", "key-id")})


def make_older_current(m: Json, _: Finds) -> None:
    m["current-snapshot-id"] = m["refs"]["main"]["snapshot-id"] = past(m)["snapshot-id"]


def remove_snapshots(m: Json, _: Finds | None) -> None:
    m.update({"snapshots": [], "refs": {}, "snapshot-log": [], "current-snapshot-id": None})


def without_snapshots(text: bytes) -> bytes:
    metadata = json.loads(text)
    remove_snapshots(metadata, None)
    return json.dumps(metadata).encode()


def remove_key_id(m: Json, _: Finds) -> None:
    del m["properties"]["encryption.key-id"]


def remove_keys(m: Json, finds: Finds) -> None:
    remove_key_id(m, finds)
    del m["encryption-keys"]


def strip(m: Json, finds: Finds) -> None:
    remove_snapshots(m, finds)
    del m["encryption-keys"]
    ours = [name for name in m["properties"] if name.startswith("encryption.")]
    for name in [*ours, "write.metadata.path"]:
        m["properties"].pop(name, None)


def remove_key_of_list(m: Json, _: Finds) -> None:
    m["encryption-keys"].remove(key(m, current(m)["key-id"]))


def flip_wrapped_kek(m: Json, _: Finds) -> None:
    blob = kek(m)["encrypted-key-metadata"]
    at = len(blob) // 2
    kek(m)["encrypted-key-metadata"] = (
        blob[:at] + ("A" if blob[at] != "A" else "B") + blob[at + 1 :]
    )


def exchange_kek(m: Json, finds: Finds) -> None:
    kek(m)["encrypted-key-metadata"] = kek(json.loads(finds.other))["encrypted-key-metadata"]


def exchange_list_key(m: Json, _: Finds) -> None:
    older = key(m, past(m)["key-id"])["encrypted-key-metadata"]
    key(m, current(m)["key-id"])["encrypted-key-metadata"] = older


def change_timestamp(m: Json, _: Finds) -> None:
    properties = kek(m)["properties"]
    properties["KEY_TIMESTAMP"] = str(int(properties["KEY_TIMESTAMP"]) + 1)


def rename_column(m: Json, _: Finds) -> None:
    """One bit, in a letter: the JSON stays valid."""
    field = m["schemas"][0]["fields"][1]
    field["name"] = chr(ord(field["name"][0]) ^ 1) + field["name"][1:]


def exchange_columns(m: Json, _: Finds) -> None:
    fields = m["schemas"][0]["fields"]
    fields[1]["id"], fields[2]["id"] = fields[2]["id"], fields[1]["id"]


def forge_plaintext(m: Json, finds: Finds) -> None:
    """A plaintext list, which names a plaintext manifest, which names a plaintext data file."""
    snapshot = current(m)
    del snapshot["key-id"]
    snapshot["manifest-list"] = current(json.loads(finds.plain))["manifest-list"]


def forge_plaintext_of_a_key(m: Json, finds: Finds) -> None:
    """The same, with the key id of the list it replaces."""
    current(m)["manifest-list"] = current(json.loads(finds.plain))["manifest-list"]


def forge_encrypted(m: Json, finds: Finds) -> None:
    """The attacker's own list, manifest and data, encrypted; its KEK is wrapped with a key that is theirs."""
    own = json.loads(finds.own)
    m["encryption-keys"] += own["encryption-keys"]
    current(m).update({name: current(own)[name] for name in ("manifest-list", "key-id")})


def forge_encrypted_under_the_kek(m: Json, finds: Finds) -> None:
    """The same, but that the list's key claims to be under the table's KEK, which the attacker does not have."""
    own = json.loads(finds.own)
    list_key = copy.deepcopy(key(own, current(own)["key-id"]))
    list_key["encrypted-by-id"] = kek(m)["key-id"]
    m["encryption-keys"].append(list_key)
    current(m).update({name: current(own)[name] for name in ("manifest-list", "key-id")})


def forge_whole(finds: Finds) -> Changes:
    """The attacker's own table, with their code, that says it is this one."""
    own, m = json.loads(finds.own), json.loads(finds.text)
    own.update({name: m[name] for name in ("table-uuid", "location")})
    path = "write.metadata.path"
    own["properties"].update({path: m["properties"][path]} if path in m["properties"] else {})
    return {finds.file: json.dumps(own).encode()}


def delete_newest(finds: Finds) -> Changes:
    """And a Hadoop catalog's pointer, which is in the storage, is set back."""
    hint = finds.file.with_name("version-hint.text")
    if not hint.exists():
        return {finds.file: None}
    return {finds.file: None, hint: str(int(hint.read_text()) - 1).encode()}


def edit(change: Edit) -> Callable[[Finds], Changes]:
    return lambda finds: finds.edited(change)


STRIPPED = "key id, all keys and all snapshots removed"
PLAINTEXT = "forged: a whole table, plaintext"
METADATA_ATTACKS: dict[str, Callable[[Finds], Changes]] = {
    "current snapshot given an older one's manifest list and key": edit(point_to_older_list),
    "an older snapshot made current": edit(make_older_current),
    "an older metadata.json in its place": lambda finds: {finds.file: finds.older},
    "the newest metadata.json deleted": delete_newest,
    "another table's metadata.json in its place": lambda finds: {finds.file: finds.other},
    "all snapshots removed": edit(remove_snapshots),
    "key id removed": edit(remove_key_id),
    "key id and all keys removed": edit(remove_keys),
    STRIPPED: edit(strip),
    "a manifest list's key removed": edit(remove_key_of_list),
    "a wrapped KEK changed": edit(flip_wrapped_kek),
    "a wrapped KEK replaced by another table's": edit(exchange_kek),
    "a KEK's timestamp changed": edit(change_timestamp),
    "a manifest list's key replaced by an older one": edit(exchange_list_key),
    "a bit flipped in a column's name": edit(rename_column),
    "two columns swapped": edit(exchange_columns),
    "forged: plaintext list, manifest and data": edit(forge_plaintext),
    "forged: the same, under the encrypted list's key": edit(forge_plaintext_of_a_key),
    "forged: plaintext manifest in an encrypted one's place": lambda finds: {
        finds.manifest: (finds.plain_manifest + bytes(1 << 16))[: finds.manifest.stat().st_size]
    },
    "forged: encrypted list, with a KEK of the attacker's": edit(forge_encrypted),
    "forged: encrypted list, said to be under the table's KEK": edit(forge_encrypted_under_the_kek),
    "forged: a whole table, with a KEK of the attacker's": forge_whole,
    PLAINTEXT: lambda finds: {finds.file: finds.plain},
}


def leaves(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values of a JSON document."""
    if isinstance(node, dict):
        return [leaf for name, child in node.items() for leaf in leaves(child, (*path, name))]
    if isinstance(node, list):
        return [leaf for i, child in enumerate(node) for leaf in leaves(child, (*path, i))]
    return [path]


def flip_a_value(finds: Finds, rng: random.Random) -> Changes:
    """One bit of one value, such that the JSON stays valid."""
    metadata = json.loads(finds.text)
    every = leaves(metadata)
    while True:
        *parents, last = rng.choice(every)
        node = metadata
        for step in parents:
            node = node[step]
        text = str(node[last])
        if isinstance(node[last], bool) or not text or text == "None":
            continue
        at = rng.randrange(len(text))
        changed = text[:at] + chr(ord(text[at]) ^ (1 << rng.randrange(7))) + text[at + 1 :]
        if isinstance(node[last], str) and changed.isprintable():
            node[last] = changed
            break
        if isinstance(node[last], int) and changed.isdigit() and changed[0] != "0":
            node[last] = int(changed)
            break
    return {finds.file: json.dumps(metadata).encode()}
