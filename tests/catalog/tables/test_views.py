"""Views over encrypted tables, on the catalogs that have views."""

import pytest
from harness.lake import Lake


@pytest.mark.catalogs("jdbc")
def test_views(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1, 2, 3])
    view = lake.table("v")
    if lake.kind == "hadoop":  # a Hadoop catalog has none; so it must stay
        with pytest.raises(Exception, match="Views are not supported by catalog"):
            lake.run(f"CREATE VIEW {view} AS SELECT * FROM {table}")
        return
    lake.run(f"CREATE VIEW {view} AS SELECT * FROM {table} WHERE id > 1")
    assert lake.ids(view) == [2, 3]
    lake.insert(table, [4])
    assert lake.ids(view) == [2, 3, 4]
    lake.run(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {table} WHERE id > 2")
    assert lake.ids(view) == [3, 4]
    lake.run(f"ALTER VIEW {view} SET TBLPROPERTIES ('owner-team'='x')")
    assert "v" in {
        row.viewName for row in lake.sql(f"SHOW VIEWS IN {lake.catalog}.{lake.namespace}")
    }
    renamed = lake.table("w")
    lake.run(f"ALTER VIEW {view} RENAME TO {renamed}")
    assert lake.ids(renamed) == [3, 4]
    lake.run(f"DROP VIEW {renamed}")
    assert not lake.sql(f"SHOW VIEWS IN {lake.catalog}.{lake.namespace}")
