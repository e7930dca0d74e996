"""The way into Spark's JVM and to a server of Spark Connect, and what that JVM is started with."""
