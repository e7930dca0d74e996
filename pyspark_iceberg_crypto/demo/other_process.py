"""The demo's other processes: one reads the table with the key, one tries without.

Run as ``python -m pyspark_iceberg_crypto.demo.other_process FOLDER KEYSTORE [DATA_FILE]``; prints JSON. With a
data file it also reads that file past the catalog, the way someone who copied it would.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import IcebergCryptoError, _jvm, _quiet
from pyspark_iceberg_crypto.demo.place import ENCRYPTED, Place

QUESTION = f"""
    SELECT carrier, count(*) AS flights, round(avg(dep_delay), 3) AS mean_delay
    FROM {ENCRYPTED} GROUP BY carrier ORDER BY flights DESC, carrier
"""  # noqa: S608 (a constant)


def answer(spark: SparkSession) -> list[list[Any]]:
    """Ask the table a question whose answer depends on every row."""
    return [list(row) for row in spark.sql(QUESTION).collect()]


def attempt(what: str, action: Callable[[], Any]) -> dict[str, Any]:
    """Try something, and tell what came of it: an answer, or an error's type, message and hint."""
    try:
        with _jvm.typed_errors():
            return {"what": what, "answer": action()}
    except IcebergCryptoError as error:
        told = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
        return {"what": what, **told}
    except Exception as error:  # noqa: BLE001 (whatever stock Spark throws is what is shown)
        return {"what": what, **_stock(str(error)), "hint": ""}


def _stock(text: str) -> dict[str, str]:
    """Pick the innermost cause out of a Java stack trace."""
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by: ")]
    first = (causes or text.strip().splitlines() or [""])[-1 if causes else 0]
    kind, _, message = first.removeprefix("Caused by: ").partition(": ")
    return {"error": kind.rpartition(".")[2], "message": message}


def main(folder: str, keystore: str, data_file: str = "") -> None:
    """Start Spark with this keystore, try to read, print what came of it."""
    place = Place(Path(folder))
    spark = place.session(keystore)
    with _quiet.output_to(place.log):
        attempts = [attempt("read the table", lambda: answer(spark))]
        if data_file:
            read = lambda: [list(row) for row in spark.read.parquet(data_file).limit(1).collect()]  # noqa: E731
            attempts.append(attempt("read a data file with stock Spark", read))
        _jvm.shut_down(spark)
    print(json.dumps(attempts, default=str))  # noqa: T201 (the answer to the parent process)


if __name__ == "__main__":
    main(*sys.argv[1:])
