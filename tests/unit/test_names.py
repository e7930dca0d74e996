"""Names of tables as users type them."""

import random

import pytest

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli._targets import catalog_of


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("lake.db.t", ["lake", "db", "t"]),
        ("lake.db.`x.y`", ["lake", "db", "x.y"]),
        ("`my-lake`.`it's`", ["my-lake", "it's"]),
        ("`a``b`.````", ["a`b", "`"]),
        ("lake.`t```", ["lake", "t`"]),
        ("lake.```t`", ["lake", "`t"]),
        ("lake.größe", ["lake", "größe"]),
    ],
)
def test_parts(name: str, parts: list[str]) -> None:
    assert _names.parts(name) == parts


def test_any_quoted_name_has_its_parts() -> None:
    chance = random.Random(7)
    for _ in range(500):
        parts = ["".join(chance.choices("a`.'é* -", k=chance.randint(1, 5))) for _ in range(3)]
        assert _names.parts(".".join(map(_names.quoted, parts))) == parts


@pytest.mark.parametrize(
    ("name", "is_whole"),
    [
        ("lake", True),
        ("`my-lake`", True),
        ("lake.db.*", True),
        ("lake.`a.b`.*", True),
        ("lake.db.t", False),
        ("lake.db.`*`", False),
        ("lake.db.`a.*`", False),
        ("/folder/*", False),
    ],
)
def test_a_table_does_not_pass_for_all_of_a_namespace(name: str, is_whole: bool) -> None:
    assert _names.is_whole(name) == is_whole


def test_catalogs_of_names() -> None:
    assert catalog_of("`my-lake`.db.`x.y`") == "my-lake"
    assert catalog_of("db.`x.y`") == "spark_catalog"
