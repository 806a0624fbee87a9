"""How a relation is rendered."""

from __future__ import annotations

from datetime import datetime, timezone

from dbt.adapters.base.relation import EventTimeFilter

from dbt.adapters.penstock.relation import PenstockRelation
from penstock.windows.filters import Filter, rendered


def test_the_information_schema_is_quoted_as_spark_quotes() -> None:
    relation = PenstockRelation.create(database="spark_catalog", schema="silver", identifier="orders")
    assert relation.render() == "`silver`.`orders`"
    assert relation.information_schema("tables").render() == "`spark_catalog`.INFORMATION_SCHEMA.tables"
    assert relation.information_schema().render() == "`spark_catalog`.INFORMATION_SCHEMA"
    assert relation.information_schema_only() == relation.information_schema()


def test_a_filter_of_a_window_is_rendered_without_a_look_at_its_table() -> None:
    """There is no adapter here, and no lake that a column's type could be read from."""
    window = EventTimeFilter("at", datetime(2026, 4, 1, tzinfo=timezone.utc), datetime(2026, 4, 2, tzinfo=timezone.utc))
    relation = PenstockRelation.create(schema="silver", identifier="orders", event_time_filter=window)
    text = str(relation)
    assert text.startswith("(select * from `silver`.`orders` where /*penstock.window {")
    assert "typeof(`at`)" in text
    found: list[Filter] = []
    rendered(text, lambda item: found.append(item) or "")
    assert found == [Filter("silver.orders", "at", window.start, window.end)]
