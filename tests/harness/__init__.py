"""What tests are written with: catalogs, JVMs, jars, files on disk, and what a refusal must be."""
