"""Writes encrypted Parquet files with Arrow's C++ implementation; see README.md.

    pip install pyarrow==25.0.1
    python tests/vectors/write_parquet.py

The key and the AAD prefix are those of made_rust/.
"""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pyarrow.parquet.encryption

ROWS = 3000


def main() -> None:
    table = pyarrow.table(
        {
            "id": pyarrow.array([i * i for i in range(ROWS)], pyarrow.int64()),
            "name": [None if i % 11 == 0 else f"n{i % 50}" for i in range(ROWS)],
            "tags": [None if i % 7 == 0 else [f"t{i % 5}", f"u{i % 3}"] for i in range(ROWS)],
        }
    )
    for version in ("1.0", "2.0"):
        encryption = pyarrow.parquet.encryption.create_encryption_properties(
            bytes(range(16)), aad_prefix=bytes(range(0xA0, 0xB0)), store_aad_prefix=False
        )
        pyarrow.parquet.write_table(
            table,
            Path(__file__).parent / f"pyarrow-pages-v{version[0]}.parquet",
            row_group_size=1000,
            use_dictionary=["name"],
            data_page_size=1000,
            write_batch_size=100,
            data_page_version=version,
            write_page_index=True,
            encryption_properties=encryption,
        )


if __name__ == "__main__":
    main()
