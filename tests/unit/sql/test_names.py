from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.sql.names import Name
from penstock.sql.quoting import quote, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("silver.orders", ("silver", "orders")),
        ("`Silver`.`Orders`", ("silver", "orders")),
        ("spark_catalog.silver.orders", ("silver", "orders")),
        ("`my schema`.`a``b`", ("my schema", "a`b")),
    ],
)
def test_names_are_read_without_regard_to_case_and_quotes(text: str, expected: tuple[str, str]) -> None:
    assert Name.parse(text) == Name(*expected)


@pytest.mark.parametrize("text", ["orders", "a.b.c", ""])
def test_what_is_not_schema_and_identifier_is_refused(text: str) -> None:
    with pytest.raises(PenstockError, match=r"schema\.identifier"):
        Name.parse(text)


@pytest.mark.parametrize("bad", ["a/b", "..", ".hidden", "a..b", "", " ", "a\nb", "a\x00b", "a\\b", "x" * 300])
def test_a_name_that_no_folder_may_have_is_refused(bad: str) -> None:
    with pytest.raises(PenstockError, match=r"schema|identifier"):
        Name("silver", bad)
    with pytest.raises(PenstockError, match="schema"):
        Name(bad, "orders")


def test_quoting_and_splitting_are_inverse() -> None:
    assert split(f"{quote('a`b')}.{quote('c.d')}") == ["a`b", "c.d"]
