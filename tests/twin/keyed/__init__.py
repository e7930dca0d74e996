"""Random histories of writes with keys for columns: no value of a keyed column may be in any byte that is written."""
