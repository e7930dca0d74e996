"""Encrypted tables in Python without Spark and without a JVM: PyIceberg reads them, with keys, guards and proof of ours."""
