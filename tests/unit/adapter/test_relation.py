"""How a relation is rendered."""

from __future__ import annotations

from dbt.adapters.penstock.relation import PenstockRelation


def test_the_information_schema_is_quoted_as_spark_quotes() -> None:
    relation = PenstockRelation.create(database="spark_catalog", schema="silver", identifier="orders")
    assert relation.render() == "`silver`.`orders`"
    assert relation.information_schema("tables").render() == "`spark_catalog`.INFORMATION_SCHEMA.tables"
    assert relation.information_schema().render() == "`spark_catalog`.INFORMATION_SCHEMA"
    assert relation.information_schema_only() == relation.information_schema()
