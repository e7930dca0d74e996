"""Reports: as data, in words, and as text in a terminal. As pages, and signed: `evidence`."""
