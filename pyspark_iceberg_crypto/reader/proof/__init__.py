"""Proof without Spark: whether every file of a table is encrypted, and is what was written.

The checks are those of Java, with the same codes and words: `_check` decides about one file, `_parquet` walks the
modules of encrypted Parquet for it, `_named` and `_tree` find the files that a table reaches, and `_verify` makes a
report of them.
"""
