"""What the tests start or build: the REST server, a keystore, Spark's configuration, a look at files on disk."""
