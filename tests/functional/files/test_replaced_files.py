"""`on_rewritten_file: replace` with a SELECT that does not keep `source_file_uri` is refused before a row is written."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.sql.names import Name

LOST = [
    "select id, upper(source_file_uri) as source_file_uri from @data",
    "select id, 'x' as source_file_uri from @data",
    # Names that the text alone does not tell apart.
    "select d.id, n.source_file_uri from @data d join {names} n on n.id = d.id",
    "select d.id, n.* except (n.id) from (select *, source_file_uri as u from @data) d join {names} n on n.id = d.id",
    "select d.id, n.source_file_uri, d.source_file_uri as u from (select *, source_file_uri from @data) d "
    "join {names} n on n.id = d.id",
]
KEPT = [
    "select *, source_file_uri from @data",
    "with d as (select *, source_file_uri from @data), e as (select * from d) select e.* from e join {names} n on n.id = e.id",
    "select id, source_file_uri from @data where id = 1 union all select id, source_file_uri from @data where id > 1",
]


@pytest.fixture
def names(landing):
    landing.lake.sql(f"create table {landing.schema}.names as select id, 'x' as source_file_uri from range(10)")
    return f"{landing.schema}.names"


@pytest.mark.parametrize("select", LOST)
def test_a_select_that_loses_it_is_refused(landing, names, select):
    landing.json("a.json", {"id": 1})
    with pytest.raises(PenstockError, match="finds a file's earlier rows by source_file_uri"):
        landing.ingest(select.format(names=names), on_rewritten_file="replace")
    assert landing.lake.find(Name.parse(landing.name)) is None
    landing.ingest(select.format(names=names))


@pytest.mark.parametrize("select", KEPT)
def test_a_select_that_keeps_it_replaces(landing, names, select):
    select = select.format(names=names)
    landing.json("a [1].json", {"id": 1}, at=1_700_000_000)
    landing.json("b.json", {"id": 2}, at=1_700_000_001)
    landing.ingest(select, on_rewritten_file="replace")
    landing.json("a [1].json", {"id": 3}, {"id": 4}, at=1_700_000_002)
    landing.ingest(select, on_rewritten_file="replace")
    assert landing.rows("id") == [(2,), (3,), (4,)]
    assert "penstock.from_files" not in "".join(path.read_text() for path in landing.table.glob("_delta_log/*.json"))


def test_files_with_a_column_of_that_name_are_refused(landing):
    landing.json("a.json", {"id": 1, "Source_File_Uri": "x"})
    with pytest.raises(PenstockError, match="the files have a column of their own"):
        landing.ingest("select id, source_file_uri from @data", on_rewritten_file="replace")
    assert landing.lake.find(Name.parse(landing.name)) is None
