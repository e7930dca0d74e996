"""inspect_file with and without a JVM, and with keys, on what another implementation and this catalog wrote."""

import os
from pathlib import Path
from typing import Any

from harness import hostile
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import TamperedError, inspect_file

ROUNDS = int(os.environ.get("ICEBERG_CRYPTO_FUZZ", "2000")) // 4


def told(spark: SparkSession | None, path: Path) -> Any:
    try:
        return {**inspect_file(spark, str(path)).to_dict(), "path": str(path)}
    except TamperedError as error:
        return error.message.replace(f"file:{path}", str(path)), error.hint


def test_python_and_java_agree(spark: SparkSession, tmp_path: Path) -> None:
    """On whole files of other writers, on hostile ones, and on those at the limits: the same facts, the same words."""
    path = tmp_path / "f"
    valid = hostile.vectors()
    edges = [b"AGS1" + hostile.little(n) + bytes(28 + n % 64) for n in hostile.NUMBERS]
    edges += [b"PARE" + bytes(60) + hostile.little(n) + b"PARE" for n in hostile.NUMBERS]
    files = [*valid, *edges, *(b"", b" {", b"ORC", b"PAR1", b"Obj\x01", b"PFA1", b"AGS1", b"PARE")]
    for number in range(len(files) + ROUNDS):
        seed = hostile.SEED + number - len(files)
        path.write_bytes(files[number] if number < len(files) else hostile.file(seed, valid))
        java, python = told(spark, path), told(None, path)
        assert python == java, f"file {number}, seed {seed}: {path.read_bytes()[:5000].hex()}"
