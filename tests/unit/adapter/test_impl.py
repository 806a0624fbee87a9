"""The adapter's parts, put together."""

from __future__ import annotations

from dbt.adapters.sql import SQLAdapter

from dbt.adapters.penstock.impl import PenstockAdapter


def test_no_method_of_ours_is_in_two_parts() -> None:
    """`preview_files` of windows calls that of files; `__init__` and `set_macro_resolver` call each other in turn."""
    parts = [part for part in PenstockAdapter.__mro__ if part.__module__.startswith("dbt.adapters.penstock")]
    names = [name for part in parts for name in part.__dict__ if callable(part.__dict__[name])]
    twice = {name for name in names if names.count(name) > 1}
    assert twice == {"__init__", "set_macro_resolver", "preview_files"}


def test_each_method_that_macros_call_has_a_value_while_a_project_is_parsed() -> None:
    """dbt parses a project without a connection: only methods that need no lake may run then."""
    ours = PenstockAdapter._available_ - SQLAdapter._available_
    assert ours - set(PenstockAdapter._parse_replacements_) == {"literal"}
