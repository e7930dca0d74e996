"""Every measure; importing this registers them in the order in which they run."""

from suite.measures import reads_and_writes, tables, tpch, memory, scale  # noqa: F401, I001 (their order)
