"""The master key that a namespace gives to its new tables; NamespaceKeysTest has the other catalogs."""

import pytest
from harness.files import files_below
from harness.lake import Lake

KEY = "encryption.key-id"


def test_the_session_catalog_does_not_drop_it_in_silence(hive: Lake) -> None:
    """Here Spark's own namespaces are in memory, and Iceberg's are in the metastore."""
    create = "CREATE NAMESPACE spark_catalog.{} WITH DBPROPERTIES ('{}'='{}')"
    hive.refused(create.format("a", "encryption.keyid", "k1"), "Did you mean encryption.key-id?")
    hive.refused(create.format("a", KEY, "nope"), "Namespace spark_catalog.a", "'nope'")
    with pytest.raises(Exception, match=r"(?s)Namespace spark_catalog\.a: .*was not kept.*hint:"):
        hive.sql(create.format("a", KEY, "k1"))
    hive.sql("DROP NAMESPACE spark_catalog.a")
    assert not list(files_below(hive.warehouse / "a.db"))
