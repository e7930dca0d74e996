"""What SQL functions over values cost: `python benchmarks/value_speed.py [MILLIONS_OF_ROWS [ROUNDS]]`.

One thread computes a column of 11 characters, and what each function makes of it. Prints nanoseconds a row as medians,
with those of the column itself taken off.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from _spark import new_keystore, start_spark
from pyspark.sql import SparkSession

F = "lake.system."
SSN = "format_string('%011d', id)"
OF_VALUES = {
    "encrypt_value": f"{F}encrypt_value(v, 'k')",
    "encrypt_value_deterministic": f"{F}encrypt_value_deterministic(v, 'k')",
    "hash_value": f"{F}hash_value(v, 'k')",
    "mask": f"{F}mask(v, 4)",
}
OF_CIPHERTEXTS = {
    "decrypt_value": ("randomized", f"{F}decrypt_value(v, 'k')"),
    "decrypt_value, deterministic": ("deterministic", f"{F}decrypt_value(v, 'k')"),
}


def nanos(spark: SparkSession, table: str, expression: str, rows: int, rounds: int) -> float:
    def once(what: str) -> float:
        start = time.perf_counter_ns()
        spark.sql(f"SELECT {what} AS result FROM {table}").write.format("noop").mode(
            "overwrite"
        ).save()
        return (time.perf_counter_ns() - start) / rows

    once(expression)
    return statistics.median(once(expression) - once("v") for _ in range(rounds))


def main(millions: float, rounds: int) -> None:
    rows = int(millions * 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        spark = start_spark(Path(folder), new_keystore(Path(folder)))
        spark.sql(f"CALL {F}create_value_key(name => 'k', key_id => 'k1')")
        spark.sql(f"CACHE TABLE plain AS SELECT {SSN} AS v FROM range({rows})")
        spark.sql(f"CACHE TABLE randomized AS SELECT {F}encrypt_value(v, 'k') AS v FROM plain")
        spark.sql(
            f"CACHE TABLE deterministic AS SELECT {F}encrypt_value_deterministic(v, 'k') AS v FROM plain"
        )
        for name, expression in OF_VALUES.items():
            print(f"{name:30} {nanos(spark, 'plain', expression, rows, rounds):8.0f} ns")
        for name, (table, expression) in OF_CIPHERTEXTS.items():
            print(f"{name:30} {nanos(spark, table, expression, rows, rounds):8.0f} ns")


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 1.0,
        int(sys.argv[2]) if len(sys.argv) > 2 else 5,
    )
