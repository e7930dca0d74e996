"""What SQL functions over values cost: `python benchmarks/value_speed.py [MILLIONS_OF_ROWS [ROUNDS]]`.

One thread computes a column of 11 characters, and what each function makes of it. Prints nanoseconds a row as medians
with quartiles, with those of the column itself, in the same round, taken off.
"""

import sys
import tempfile
import time
from pathlib import Path

from _spark import new_keystore, start_spark
from pyspark.sql import SparkSession
from suite.stats import Spread, quartiles

F = "lake.system."
SSN = "format_string('%011d', id)"
OF_VALUES = {
    "encrypt_value": f"{F}encrypt_value(v, 'k')",
    "encrypt_value_deterministic": f"{F}encrypt_value_deterministic(v, 'k')",
    "hash_value": f"{F}hash_value(v, 'k')",
    "mask": f"{F}mask(v, 4)",
}
OF_CIPHERTEXTS = {"decrypt_value": "randomized", "decrypt_value, deterministic": "deterministic"}


def nanos(
    spark: SparkSession, table: str, column: str, expression: str, rows: int, rounds: int
) -> Spread:
    def once(what: str) -> float:
        start = time.perf_counter_ns()
        spark.sql(f"SELECT {what} AS result FROM {table}").write.format("noop").mode(
            "overwrite"
        ).save()
        return (time.perf_counter_ns() - start) / rows

    once(expression)
    return quartiles([once(expression) - once(column) for _ in range(rounds)])


def main(millions: float, rounds: int) -> None:
    rows = int(millions * 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        spark = start_spark(Path(folder), new_keystore(Path(folder)))
        spark.sql(f"CALL {F}create_value_key(name => 'k', key_id => 'k1')")
        spark.sql(f"CACHE TABLE plain AS SELECT {SSN} AS v FROM range({rows})")
        # both in one: a table of one query would be taken for the answer when that query is measured
        spark.sql(
            f"CACHE TABLE ciphertexts AS SELECT {F}encrypt_value(v, 'k') AS randomized, "
            f"{F}encrypt_value_deterministic(v, 'k') AS deterministic FROM plain"
        )
        for name, expression in OF_VALUES.items():
            print_nanos(name, nanos(spark, "plain", "v", expression, rows, rounds))
        for name, column in OF_CIPHERTEXTS.items():
            expression = f"{F}decrypt_value({column}, 'k')"
            print_nanos(name, nanos(spark, "ciphertexts", column, expression, rows, rounds))


def print_nanos(name: str, took: Spread) -> None:
    print(f"{name:30} {took.text(0)} ns")


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 1.0,
        int(sys.argv[2]) if len(sys.argv) > 2 else 11,
    )
