"""What the tests start or build: the REST catalog's server, a keystore, Spark's configuration, and the look at files on disk."""
