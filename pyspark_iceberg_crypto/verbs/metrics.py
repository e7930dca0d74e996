"""What a catalog asked of its KMS, counted."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto.jvm import _jvm


@dataclass(frozen=True)
class KmsMetrics:
    """What a catalog asked of its KMS since it was loaded.

    Attributes:
        kms: the kind of KMS.
        wrap_calls: calls that wrapped a key.
        unwrap_calls: calls that unwrapped one.
        hits: keys that came from the cache instead.
        misses: keys that were not in the cache.
        errors: calls that failed.
        retries: calls that were made again because the KMS had been unavailable.
        wrap_ms: milliseconds spent in wrap calls, together.
        unwrap_ms: milliseconds spent in unwrap calls, together.
        cached_keys: keys in the cache now.
        circuit: the circuit breaker of the way to the KMS: "closed" (it is asked), "open" (no connection was
            found, and it is left alone for a while), "half_open" (one call tries it again), or "off".
        keys_left_alone: master keys that are left alone for a while, as calls for them failed.
    """

    kms: str
    wrap_calls: int
    unwrap_calls: int
    hits: int
    misses: int
    errors: int
    retries: int
    wrap_ms: float
    unwrap_ms: float
    cached_keys: int
    circuit: str
    keys_left_alone: int


def kms_metrics(spark: SparkSession, catalog: str = "lake") -> KmsMetrics:
    """Read the counters of a catalog's KMS client.

    Raises:
        ConfigurationError: it is not a catalog of ours, or it has no KMS.
    """
    found = _jvm.run(spark, "kms_metrics", catalog=catalog)
    return KmsMetrics(**{name: found[name] for name in KmsMetrics.__dataclass_fields__})
