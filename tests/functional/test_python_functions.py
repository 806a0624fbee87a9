"""Python functions of the user over tables and files, as Spark runs them in Python workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from dbt.tests.util import run_dbt

from penstock.api import connect
from penstock.spark import session
from penstock.spark.startup.configuration import spark_configuration
from tests.conftest import SESSION, USERS_SESSION

pytestmark = pytest.mark.users_session

UDF = """
from pyspark.sql.functions import udf

def model(dbt, spark):
    dbt.config(materialized="table")
    shout = udf(lambda name: name.upper() + "!", "string")
    return dbt.ref("people").select("id", shout("name").alias("name"))
"""
PANDAS_UDF = """
import pandas as pd
from pyspark.sql.functions import pandas_udf

def model(dbt, spark):
    dbt.config(materialized="incremental", unique_key="id")
    @pandas_udf("double")
    def half(price: pd.Series) -> pd.Series:
        return price / 2
    return dbt.ref("people").select("id", half("price").alias("price"))
"""
IN_PANDAS = """
def model(dbt, spark):
    dbt.config(materialized="table", packages=["pandas"])
    def ranked(rows):
        return rows.assign(place=rows["price"].rank(ascending=False).astype("int64"))[["id", "team", "place"]]
    return dbt.ref("people").groupBy("team").applyInPandas(ranked, "id bigint, team string, place bigint")
"""
OVER_FILES = """
from pyspark.sql.functions import udf

def model(dbt, spark):
    dbt.config(materialized="table")
    return dbt.source("raw", "prices").select(udf(lambda price: price + 1, "double")("price").alias("price"))
"""
SECONDS = 180


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A function that never ends fails its test, and not the whole run: its Spark is ended."""
    alarm = threading.Timer(SECONDS, session.stop)
    alarm.start()
    yield
    alarm.cancel()


class TestPythonFunctions:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        people = "select id, concat('n', id) as name, if(id < 2, 'a', 'b') as team, id * 10.0d as price from range(5)"
        return {
            "people.sql": "{{ config(materialized='table') }} " + people,
            "shouted.py": UDF,
            "halved.py": PANDAS_UDF,
            "ranked.py": IN_PANDAS,
            "dearer.py": OVER_FILES,
            "sources.yml": "sources: [{name: raw, tables: [{name: prices, "
            "config: {location: prices, format: parquet}}]}]",
        }

    def test_over_tables_and_files(self, project) -> None:
        folder = Path(project.project_root) / "prices"
        folder.mkdir()
        pd.DataFrame({"price": [1.5, 2.5]}).to_parquet(folder / "a.parquet")
        for _ in range(2):
            assert len(run_dbt(["run"])) == 5

        def rows(model: str) -> list[tuple[object, ...]]:
            return sorted(project.run_sql(f"select * from {project.test_schema}.{model}", fetch="all"))

        assert rows("shouted") == [(id, f"N{id}!") for id in range(5)]
        assert rows("halved") == [(id, id * 5.0) for id in range(5)]
        assert rows("ranked") == [(0, "a", 2), (1, "a", 1), (2, "b", 3), (3, "b", 2), (4, "b", 1)]
        assert rows("dearer") == [(2.5,), (3.5,)]


def test_a_function_in_sql(tmp_path: Path) -> None:
    """A function that is registered with the session, over a table that a commit has just changed."""
    lake = connect(str(tmp_path / "lake"), session=USERS_SESSION)
    lake.sql("create table s.t as select id from range(3)")
    lake.spark.udf.register("plus_one", lambda value: value + 1, "bigint")
    lake.sql("delete from s.t where id = 0")
    assert sorted(row[0] for row in lake.sql("select plus_one(id) from s.t").collect()) == [2, 3]


def test_the_users_session_is_a_users(tmp_path: Path) -> None:
    """What the tests of files, changes and windows set is what a profile without settings gets."""
    lake = connect(str(tmp_path / "lake"), session=SESSION)
    plain = spark_configuration(connect(str(tmp_path / "lake")).settings, str(tmp_path), [])
    defaults = lake.spark._jvm.org.apache.spark.sql.internal.SQLConf()  # type: ignore[attr-defined]
    for key, value in USERS_SESSION["spark_config"].items():
        if key.startswith("spark.sql.") or key.startswith("spark.databricks."):
            expected = plain[key] if key in plain else defaults.getConfString(key)
            assert value == expected, key
