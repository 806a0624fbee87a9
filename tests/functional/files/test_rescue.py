"""What does not fit its columns is kept in `rescued_data_column`, and nothing is lost without a word."""

from __future__ import annotations

import gzip
import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import PenstockError

COLUMNS = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
KEPT = {"rescued_data_column": "rescued"}
DECLARED = {**KEPT, "source_columns": COLUMNS}


def rescued(landing, by: str = "id, name") -> list:
    """Each row, with what was rescued of it taken apart."""
    return sort(
        *((*row[:-1], None if row[-1] is None else json.loads(row[-1])) for row in landing.rows(f"{by}, rescued"))
    )


def sort(*rows: tuple) -> list[tuple]:
    return sorted(rows, key=str)


JSON = """{"id": 1, "name": "a"}
{"id": "x", "name": "b", "more": {"deep": 1.10}}
{"name": "c", "unknown": 12345678901234567890123}

no record
7
null
{"id": 4, "name": null, "nothing": null}
[{"id": 5}, {"id": "six", "name": "f"}, {"id": 6, "name": "g"}]
{"id": 7, "name"
"""
FOUND = sort(
    (1, "a", None),
    (None, "b", {"id": "x", "more": '{"deep": 1.10}'}),
    (None, "c", {"unknown": "12345678901234567890123"}),
    (None, None, {"_record": "no record"}),
    (None, None, {"_record": "7"}),
    (None, None, {"_record": "null"}),
    (4, None, None),
    (5, None, {"_record": '[{"id": 5}, {"id": "six", "name": "f"}, {"id": 6, "name": "g"}]'}),
    (None, "f", {"_record": '[{"id": 5}, {"id": "six", "name": "f"}, {"id": 6, "name": "g"}]'}),
    (6, "g", None),
    (None, None, {"_record": '{"id": 7, "name"'}),
)


def test_json_lines(landing):
    landing.text("a.json", JSON)
    landing.ingest(**DECLARED)
    assert rescued(landing) == FOUND


def test_json_that_is_packed_in_folders_with_virtual_columns(landing):
    folder = landing.root / "day=2026-01-01"
    folder.mkdir()
    (folder / "a.json.gz").write_bytes(gzip.compress(b'{"id": 1, "day": "other", "x": 1}\n{"id": "y"}\n'))
    landing.text("[b].json", '{"id": 2}\n')
    landing.ingest("select *, source_file_uri, source_file_length as size from @data", **DECLARED)
    found = rescued(landing, "id, day, size")
    day, size = date(2026, 1, 1), (folder / "a.json.gz").stat().st_size
    assert found == sort((1, day, size, {"x": "1"}), (None, day, size, {"id": "y"}), (2, None, 10, None))
    assert len({row[0] for row in landing.rows("source_file_uri")}) == 2


ARRAY = '[{"id": 1,\n "name": "a"},\n {"id": "x",\n "new": 2}]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ARRAY,
            [(1, "a", None), (None, None, {"new": "2", "_record": ARRAY})],
        ),
        ('\ufeff{"id": 3,\n "name": "c"}', [(3, "c", None)]),
        ('{"id": 3,\n "na', [(None, None, {"_record": '{"id": 3,\n "na'})]),
    ],
)
def test_json_over_several_lines(landing, text, expected):
    landing.text("a.json", text)
    landing.ingest(**DECLARED, source_options={"multiLine": True})
    assert rescued(landing) == sort(*expected)


LATE = '{"id": 3.5, "p": {"n": 3, "m": 4}, "late": true}\n'


def test_json_of_which_a_later_file_has_more(landing):
    """With an inferred schema, that a bad line does not make fail."""
    landing.text("a.json", '{"id": 1, "p": {"n": 1}}\nnot json\n', at=1_700_000_000)
    landing.ingest(**KEPT)
    landing.text("b.json", '{"id": 2, "p": {"n": 2}}\n', at=1_700_000_001)
    landing.text("c.json", LATE, at=1_700_000_002)
    landing.ingest(**KEPT)
    assert rescued(landing, "id, p.n") == sort(
        (1, 1, None),
        (None, None, {"_record": "not json"}),
        (2, 2, None),
        (None, 3, {"id": "3.5", "p": '{"n":3,"m":4}', "late": "true", "_record": LATE.strip()}),
    )


def test_json_that_does_not_fit_below(landing):
    columns = [{"name": "p", "type": "struct<n:int>"}, {"name": "l", "type": "array<struct<n:int>>"}, *COLUMNS]
    bad = '{"id": "x", "p": {"n": "y"}}'
    lines = [bad, '{"id": 1, "l": [{"n": 1}, {"m": 2}]}', '{"id": 2, "l": [{"n": 1}], "p": {"n": 1}}']
    landing.text("a.json", "\n".join(lines))
    landing.ingest(**KEPT, source_columns=columns)
    assert rescued(landing, "id, p.n, size(l)") == sort(
        (None, None, None, {"id": "x", "p": '{"n":"y"}', "_record": bad}),
        (1, None, 2, {"l": '[{"n":1},{"m":"2"}]'}),
        (2, 1, 1, None),
    )


def test_json_in_another_encoding_is_refused(landing):
    landing.text("a.json", '{"id": 1}\n')
    with pytest.raises(PenstockError, match=r"needs json in UTF-8.*UTF-16"):
        landing.ingest(**DECLARED, source_options={"encoding": "UTF-16LE", "lineSep": "\n"})
    assert not landing.table.exists()


def test_json_keeps_all_digits(landing):
    digits = "0.12345678901234567890123"
    landing.text("a.json", f'{{"id": {digits}, "name": {digits}, "new": {digits}}}\n')
    landing.ingest(**DECLARED)
    ((id, name, found),) = rescued(landing)
    assert (id, name, found["new"]) == (None, digits, digits)
    assert f'"id": {digits}' in found["_record"]


def test_json_knows_letter_case(landing):
    landing.text("a.json", '{"id": 1, "Name": "a"}\n')
    with pytest.raises(PenstockError, match="the field Name and @data has the column name"):
        landing.ingest(**DECLARED)


CSV = '''id;name
1;a
x;b
2;c;more;"and ""more"""
3
y
;
y;d;extra
'''


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("declared", [True, False])
def test_csv(landing, header, declared):
    text = CSV if header else CSV.partition("\n")[2]
    if not declared:
        text = text.replace("y;", "8;").replace("y\n", "8\n").replace("x;", "9;")
    landing.text("a.csv", text)
    options = {"header": header, "sep": ";"}
    select = "select * from @data" if header or declared else "select _c0 as id, _c1 as name, rescued from @data"
    landing.ingest(select, **(DECLARED if declared else KEPT), source_options=options)
    if declared:
        expected = sort(
            (1, "a", None),
            (None, "b", {"id": "x"}),
            (2, "c", {"_record": '2;c;more;"and ""more"""'}),
            (3, None, {"_record": "3"}),
            (None, None, {"id": "y", "_record": "y"}),
            (None, None, None),
            (None, "d", {"id": "y", "_record": "y;d;extra"}),
        )
    else:
        expected = sort(
            (1, "a", None),
            (9, "b", None),
            (2, "c", {"_record": '2;c;more;"and ""more"""'}),
            (3, None, {"_record": "3"}),
            (8, None, {"_record": "8"}),
            (None, None, None),
            (8, "d", {"_record": "8;d;extra"}),
        )
    assert rescued(landing) == expected


def test_csv_over_several_lines_and_in_folders(landing):
    landing.text("day=2026-01-01/a.csv", 'id,name\nx,"two\nlines"\n1,"two\nlines",more\n')
    options = {"header": True, "multiLine": True, "mode": "FAILFAST"}
    landing.ingest(**DECLARED, source_options=options)
    assert rescued(landing) == sort(
        (None, "two\nlines", {"id": "x"}), (1, "two\nlines", {"_record": '1,"two\nlines",more'})
    )


def test_csv_of_which_a_later_file_has_more(landing):
    landing.text("a.csv", "1,a\n", at=1_700_000_000)
    landing.text("b.csv", "2,b,c\n", at=1_700_000_001)
    landing.ingest(**DECLARED)
    assert rescued(landing) == [(1, "a", None), (2, "b", {"_record": "2,b,c"})]


@pytest.mark.parametrize(
    "select", ["select id from @data", "with d as (select * from @data) select id, rescued as r from d"]
)
def test_a_select_that_leaves_the_column_out_is_refused(landing, select):
    landing.text("a.json", JSON)
    with pytest.raises(PenstockError, match=r"`rescued_data_column` is rescued, but the model does not return it"):
        landing.ingest(select, **DECLARED)
    assert not landing.table.exists()


@pytest.mark.parametrize("policy", ["ignore", "append_new_columns", "sync_all_columns"])
def test_a_table_that_lacks_the_column_gets_it(landing, policy):
    landing.text("a.json", '{"id": 1, "name": "a"}\n')
    landing.ingest(source_columns=COLUMNS)
    landing.text("b.json", '{"id": "x", "name": "b"}\n')
    landing.ingest("select *, 1 as more from @data", **DECLARED, on_schema_change=policy)
    assert rescued(landing) == [(1, "a", None), (None, "b", {"id": "x"})]
    assert ("more" in landing.lake.table(landing.name).columns) == (policy != "ignore")


def test_a_table_that_lacks_the_column_fails(landing):
    landing.text("a.json", '{"id": 1, "name": "a"}\n')
    landing.ingest(source_columns=COLUMNS)
    landing.text("b.json", '{"id": "x", "name": "b"}\n')
    with pytest.raises(PenstockError, match="new: rescued"):
        landing.ingest(**DECLARED, on_schema_change="fail")


def test_it_has_no_name_of_the_files(landing):
    landing.text("a.json", '{"id": 1, "rescued": 2}\n')
    with pytest.raises(PenstockError, match="the files have a column of that name"):
        landing.ingest(**KEPT)
    with pytest.raises(PenstockError, match="`source_columns` declares a column of that name"):
        landing.ingest(source_columns=[*COLUMNS, {"name": "Rescued", "type": "string"}], **KEPT)


def test_files_that_carry_their_types_are_refused(landing):
    pq.write_table(pa.table({"id": [1]}), landing.root / "a.parquet")
    with pytest.raises(PenstockError, match=r"`rescued_data_column` \(rescued\) is for csv and json, .* are parquet"):
        landing.ingest(**KEPT)
    assert not landing.table.exists()


def test_with_replaced_files(landing):
    """The check of `source_file_uri` knows the column too."""
    path = landing.text("a.json", '{"id": "x"}\n', at=1_700_000_000)
    keys = {**DECLARED, "on_rewritten_file": "replace"}
    landing.ingest("select *, source_file_uri from @data", **keys)
    path.write_text('{"id": "y"}\n{"id": 2}\n')
    landing.ingest("select *, source_file_uri from @data", **keys)
    assert rescued(landing) == sort((None, None, {"id": "y"}), (2, None, None))
