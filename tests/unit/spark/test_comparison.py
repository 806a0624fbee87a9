"""Expressions that tell values apart."""

from __future__ import annotations

import pytest

from penstock.spark.comparison import identity, is_negative_zero
from penstock.spark.weights import WEIGHT, net


@pytest.mark.parametrize(
    ("type", "begins"),
    [
        ("bigint", "c"),
        ("string", "c"),
        ("array<date>", "c"),
        ("double", f"struct(c, {is_negative_zero('c')})"),
        ("array<float>", "struct(c, cast(c as string))"),
        ("map<string,int>", "map_entries(c)"),
        ("map<string,double>", "struct(map_entries(c), cast(c as string))"),
        ("map<string,map<string,int>>", "to_json(struct(c as v)"),
        ("struct<m:map<string,double>>", "to_json(struct(c as v)"),
        ("variant", "struct(c is null, schema_of_variant(c), to_json("),
        ("string collate UTF8_LCASE", "cast(c as binary)"),
        ("array<string collate UTF8_LCASE>", "to_json(struct(c as v)"),
    ],
)
def test_identity(type: str, begins: str) -> None:
    made = identity("c", type)
    assert made == begins or (begins.endswith(("v)", "(")) and made.startswith(begins))


def test_net_rows_are_grouped_by_what_tells_them_apart() -> None:
    query = net("images", [("id", "bigint"), ("m", "map<string,int>"), ("d", "double")])
    assert query == (
        f"select `id`, any_value(`m`) as `m`, if({is_negative_zero('`d`')}, -`d`, `d`) as `d`, "
        f"sum({WEIGHT}) as {WEIGHT} from images group by `id`, map_entries(`m`), `d`, {is_negative_zero('`d`')} "
        f"having sum({WEIGHT}) <> 0"
    )
