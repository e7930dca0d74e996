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

from pyspark_iceberg_crypto import IcebergCryptoError
from pyspark_iceberg_crypto.demo.place import ENCRYPTED, Place
from pyspark_iceberg_crypto.jvm import _jvm, _quiet
from pyspark_iceberg_crypto.jvm._typed import typed_errors

QUESTION = f"""
    SELECT carrier, count(*) AS flights, round(avg(dep_delay), 3) AS mean_delay
    FROM {ENCRYPTED} GROUP BY carrier ORDER BY flights DESC, carrier
"""  # noqa: S608 (a constant)


def answer(spark: SparkSession) -> list[list[Any]]:
    """Ask the table a question whose answer depends on every row."""
    return [list(row) for row in spark.sql(QUESTION).collect()]


def attempt(what: str, action: Callable[[], Any]) -> dict[str, Any]:
    """Try something, and return the outcome: an answer, or an error's type, message and hint."""
    try:
        with typed_errors():
            return {"what": what, "answer": action()}
    except IcebergCryptoError as error:
        kind, message, hint = type(error).__name__, error.message, error.hint
    except Exception as error:  # noqa: BLE001 (whatever stock Spark raises is what is shown)
        # The innermost cause of a Java stack trace.
        last = str(error).strip().rpartition("Caused by: ")[2].partition("\n")[0]
        name, _, message = last.partition(": ")
        kind, hint = name.rpartition(".")[2], ""
    return {"what": what, "error": kind, "message": message, "hint": hint}


def main(folder: str, keystore: str, data_file: str = "") -> None:
    """Start Spark with this keystore, try to read, print the result."""
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
