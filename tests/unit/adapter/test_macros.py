"""dbt-spark's macros come along for packages that have `spark__` macros: none of them may act here unseen."""

from __future__ import annotations

import re
from pathlib import Path

import dbt.include.spark

import dbt.include.penstock

_GRANTS = "a lake has no grants, and `penstock__apply_grants` calls nothing"
_CLAUSES = "a clause of dbt-spark's CREATE TABLE; here `adapter.table_clauses` writes them, from a checked config"
_SEEDS = "dbt-spark's seed, row by row; here `adapter.seed_query` hands the rows over as Arrow"

ALLOWED = {
    "spark__assert_not_null": "a helper of dbt-spark's own date macros, right as it is",
    "spark__snapshot_hash_arguments": "md5 over strings, right as it is",
    "spark__snapshot_string_as_time": "to_timestamp, right as it is",
    "spark__call_dcl_statements": _GRANTS,
    "spark__get_grant_sql": _GRANTS,
    "spark__get_revoke_sql": _GRANTS,
    "spark__support_multiple_grantees_per_dcl_statement": _GRANTS,
    "spark__clustered_cols": _CLAUSES,
    "spark__comment_clause": _CLAUSES,
    "spark__file_format_clause": _CLAUSES,
    "spark__location_clause": _CLAUSES,
    "spark__options_clause": _CLAUSES,
    "spark__partition_cols": _CLAUSES,
    "spark__tblproperties_clause": _CLAUSES,
    "spark__create_csv_table": _SEEDS,
    "spark__get_binding_char": _SEEDS,
    "spark__load_csv_rows": _SEEDS,
    "spark__reset_csv_table": _SEEDS,
    "spark__create_or_replace_clone": "only dbt-spark's clone calls it; here the lake clones, with ledger and mark",
    "spark__get_columns_in_relation_raw": "only SparkAdapter calls it; here the Delta log tells the columns",
}

_MACRO = re.compile(r"{%-?\s*macro\s+(\w+?)__(\w+)\s*\(")
_MATERIALIZATION = re.compile(r"{%-?\s*materialization\s+(\w+)\s*,\s*adapter\s*=\s*['\"](\w+)['\"]")


def _sources(package: Path) -> str:
    return "\n".join(file.read_text() for file in sorted((package / "macros").rglob("*.sql")))


SPARK = _sources(Path(dbt.include.spark.PACKAGE_PATH))
PENSTOCK = _sources(Path(dbt.include.penstock.PACKAGE_PATH))


def _dispatched(source: str, prefix: str) -> set[str]:
    return {name for found, name in _MACRO.findall(source) if found == prefix}


def test_every_macro_of_dbt_spark_is_overridden_or_allowed() -> None:
    overridden = _dispatched(PENSTOCK, "penstock")
    unseen = {name for name in _dispatched(SPARK, "spark") - overridden if f"spark__{name}" not in ALLOWED}
    assert not unseen


def test_nothing_is_allowed_in_vain() -> None:
    left = {f"spark__{name}" for name in _dispatched(SPARK, "spark") - _dispatched(PENSTOCK, "penstock")}
    assert set(ALLOWED) == left


def test_every_materialization_of_dbt_spark_is_overridden() -> None:
    ours = {name for name, adapter in _MATERIALIZATION.findall(PENSTOCK) if adapter == "penstock"}
    theirs = {name for name, adapter in _MATERIALIZATION.findall(SPARK) if adapter == "spark"}
    assert theirs
    assert not theirs - ours
