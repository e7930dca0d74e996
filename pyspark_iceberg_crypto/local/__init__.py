"""What local files are, without a JVM."""
