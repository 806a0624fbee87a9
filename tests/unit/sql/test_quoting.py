"""Quoted names and texts: read back as they are, by our own parsers too."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from sqlglot import tokenize

from penstock.config.session_settings import SessionSettings
from penstock.delta.layout import Layout
from penstock.errors import PenstockError
from penstock.lake.relations import Link, View
from penstock.sql import statement as sql
from penstock.sql.names import Name
from penstock.sql.quoting import column, head, literal, plain, quote, shown, split
from penstock.windows.filters import Filter, rendered

HOSTILE = [
    "`", "``", "'", '"', "\\", "\\'", ".", " ", "a b", ";", "a\nb", "--", "/*", "*/", "${env:HOME}", "%", "%20", "_",
    "ü 文", "select", "1st", "a`b'c\"d\\e.f;g--h/*i*/j${x}k%l\nm", "r'x'", "\\u0041", "\\n", "a\tb", "$", "{}", "@data",
]  # fmt: skip
NAMES = [text for text in HOSTILE if not re.search(r"[/\\\n\t]|^\.|^ ", text)]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_quoted_text_is_one_token_with_that_text(text: str) -> None:
    (name,) = tokenize(quote(text), read="spark")
    (string,) = tokenize(literal(text), read="spark")
    assert (name.text, string.text) == (text, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_parts_survive_being_printed_and_parsed(text: str) -> None:
    assert split(f"{quote(text)}.{quote('x')}") == [text, "x"]
    assert split(shown([text, "x"])) == [text, "x"]
    assert plain(quote(text)) == text


@pytest.mark.parametrize("text", NAMES)
def test_a_relations_name_survives_being_printed_and_parsed(text: str) -> None:
    name = Name(text, f"t{text}")
    assert Name.parse(str(name)) == name
    assert Name.parse(name.sql) == name
    assert sql.read(f"create table {name.sql} as select 1").target == name


@pytest.mark.parametrize("text", ["a`b.c", "a..b", "a.", ".a", "a.b`", "`a`b.c", "", "a.``"])
def test_what_is_no_name_has_no_parts(text: str) -> None:
    with pytest.raises(PenstockError, match=r"is not a relation's name|is empty"):
        Name.parse(text)


@pytest.mark.parametrize(
    ("given", "columns", "expected"),
    [
        ("id", ["ID"], "`ID`"),
        ("`my key`", ["my key"], "`my key`"),
        ("a.b", ["a.b", "a"], "`a.b`"),
        ("a.b", ["a"], "`a`.`b`"),
        ("`a.b`.c", ["a.b"], "`a.b`.`c`"),
        ("x; drop table t", [], "`x; drop table t`"),
        ("a`b", ["a`b"], "`a``b`"),
    ],
)
def test_a_column_of_a_config_is_quoted(given: str, columns: list[str], expected: str) -> None:
    assert column(given, columns) == expected


def test_the_column_that_a_name_is_of() -> None:
    assert head("Payload.id", ["payload"]) == "payload"
    assert head("`a.b`", ["a.b"]) == "a.b"
    assert head("other.id", ["payload"]) is None


def test_names_of_a_layout_may_have_quotes_and_commas() -> None:
    layout = Layout.from_config({"partition_by": "`a,b`, c ,`d``e`"})
    assert layout.partition_by == ("a,b", "c", "d`e")
    assert layout.clauses() == "partitioned by (`a,b`, `c`, `d``e`)"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_filter_of_a_window_is_found_again_whatever_its_column_is_called(name: str) -> None:
    given = Filter("a.b", quote(name), datetime(2026, 1, 1), datetime(2026, 1, 2))
    text = f"select * from t where {given.marked()}"
    assert f"cast({quote(name)} as date) >= date '2026-01-01'" in text
    found: list[Filter] = []
    assert rendered(text, lambda item: found.append(item) or "true") == "select * from t where true"
    assert found == [given]
    assert f"{quote(name)} >= date '2026-01-01'" in rendered(text, lambda item: item.sql("date"))
    parts = text.split("window ", 1)[1].split("*/")[0]
    assert "*" not in parts


@pytest.mark.parametrize("key", ["spark.sql.parser.escapedStringLiterals", "spark.sql.variable.substitute"])
def test_settings_that_quoting_relies_on_are_not_the_users(key: str) -> None:
    with pytest.raises(PenstockError, match=f"can't set {key} to true"):
        SessionSettings.from_mapping({"spark_config": {key: True}})
    assert SessionSettings.from_mapping({"spark_config": {key: False}}).spark_config == {key: "false"}


@pytest.mark.parametrize(
    "content",
    [
        '{"format_version": 1, "location": 3, "format": "csv"}',
        '{"format_version": 1, "location": "/x", "format": ["csv"]}',
        '{"format_version": 1, "location": "/x", "format": "csv", "options": {"sep": 1}}',
        '{"format_version": 1, "location": "/x", "format": "csv", "options": ["sep"]}',
        "[]",
    ],
)
def test_a_damaged_link_is_one_clear_error(content: str) -> None:
    with pytest.raises(PenstockError, match=r"not written by penstock \(/lake/_link.json\)"):
        Link.from_bytes(content.encode(), "/lake/_link.json")


@pytest.mark.parametrize(
    "content",
    [
        '{"format_version": 1, "sql": ["x"], "columns": []}',
        '{"format_version": 1, "sql": "select 1", "columns": [{"nom": "id"}]}',
        '{"format_version": 1, "sql": "select 1", "columns": [{"name": 1, "type": "int"}]}',
        '{"format_version": 1, "sql": "select 1", "columns": 3}',
        '{"format_version": 1, "sql": "select 1", "columns": [], "description": 1}',
        '{"format_version": 1, "sql": "select 1", "columns": [], "inputs": {"one": "x"}}',
        '{"format_version": 1, "sql": "select 1", "columns": [], "inputs": "s.t"}',
    ],
)
def test_a_damaged_view_is_one_clear_error(content: str) -> None:
    with pytest.raises(PenstockError, match=r"not written by penstock \(/lake/_view.json\)"):
        View.from_bytes(content.encode(), "/lake/_view.json")


def test_quotes_are_escaped_in_one_place() -> None:
    """Code that escapes quotes by itself is code that forgets one of them."""
    by_hand = re.compile(r"""replace\((?:"[`\']", "[`\'\\]|"\\\\')""")
    source = Path(sql.__file__).parents[2]
    files = [*source.rglob("*.py"), *source.rglob("*.sql")]
    found = {path.name for path in files for line in path.read_text().splitlines() if by_hand.search(line)}
    assert found == {"quoting.py"}
