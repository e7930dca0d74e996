"""Random histories on a table of ours and, step by step, on a plaintext twin under stock Iceberg."""
