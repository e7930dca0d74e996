"""The commands `prune` and `reencrypt`."""

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result
from doubles.in_process import ANSWERS

Command = Callable[..., tuple[Result, list[Any]]]

PRUNED = {**ANSWERS["prune_encryption_keys"], "table": "lake.db.t\x1b[31m"}


def test_prune(command: Command) -> None:
    result, asked = command("prune", "lake.db.t", "--confirm", answer=PRUNED)
    assert asked == ["prune_encryption_keys", "lake.db.t", False]
    assert result.exit_code == 0
    assert result.stdout.strip() == rf"✓ lake.db.t\x1b[31m: {PRUNED['message']}"
    result, asked = command("prune", "lake.db.t", "--output", "json", answer=PRUNED)
    assert asked == ["prune_encryption_keys", "lake.db.t", True]
    assert json.loads(result.stdout) == {"ok": True, **PRUNED}


REENCRYPTED = ANSWERS["reencrypt_table"]


def test_reencrypt(command: Command) -> None:
    option = ("--option", "target-file-size-bytes=1000")
    result, asked = command("reencrypt", "lake.db.t", *option, "--confirm", answer=REENCRYPTED)
    assert asked == ["reencrypt_table", "lake.db.t", {"target-file-size-bytes": "1000"}, False]
    assert result.exit_code == 0
    assert result.stdout.strip() == "✓ lake.db.t: done"
    left = {**REENCRYPTED, "left": 2}
    result, asked = command("reencrypt", "lake.db.t", "--confirm", "--output", "json", answer=left)
    assert asked == ["reencrypt_table", "lake.db.t", {}, False]
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"ok": False, **left})
    result, asked = command("reencrypt", "lake.db.t", "--option", "x")
    assert result.exit_code == 64 and not asked
    assert "target-file-size-bytes=536870912" in result.stderr
    result, asked = command("reencrypt", "lake.db.t", answer=REENCRYPTED)
    assert asked[-1] is True
