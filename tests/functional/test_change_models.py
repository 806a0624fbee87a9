"""Models by `cdf_merge`, through dbt."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.tests.util import run_dbt

from penstock.sql.names import Name

pytestmark = pytest.mark.users_session

PRODUCTS = "id,code,name,active,category\n1,a,Ada,true,x\n2,b,Bob,true,y\n3,c,Cy,false,x\n"
FEED = (
    "seeds: [{name: products, config: {change_data_feed: true}}, {name: categories, config: {change_data_feed: true}}]"
)
SILVER = """
{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key=['code'], change_data_feed=true,
          on_schema_change='append_new_columns') }}
select code, upper(name) as name, category from {{ ref('staged') }} where active
"""
GOLD = """
{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='category') }}
select c.category, c.title, count(s.code) as products
from {{ ref('categories') }} c left join {{ ref('silver') }} s on s.category = c.category
group by c.category, c.title
"""


def rows(project, query: str) -> list[tuple]:
    return sorted(tuple(row) for row in project.run_sql(query.replace("{s}", project.test_schema), fetch="all"))


class TestChangeModel:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"products.csv": PRODUCTS, "categories.csv": "category,title\nx,Ex\ny,Why\n", "seeds.yml": FEED}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "staged.sql": "select * from {{ ref('products') }}",
            "silver.sql": SILVER,
            "gold.sql": GOLD,
            "narrow.sql": GOLD.replace("unique_key=", "cdf_source='silver', unique_key="),
        }

    def test_changes_reach_gold_deletes_included(self, project) -> None:
        run_dbt(["seed"])
        results = run_dbt(["run"])
        assert {r.node.name: r.adapter_response.get("rows_inserted") for r in results if r.node.name != "staged"} == {
            "silver": 2,
            "gold": 2,
            "narrow": 2,
        }
        assert rows(project, "select category, products from {s}.gold") == [("x", 1), ("y", 1)]
        feed = project.adapter.lake.log_of(f"{project.test_schema}.silver").properties
        assert feed["delta.enableChangeDataFeed"] == "true"

        project.run_sql("delete from {schema}.products where id = 1")
        project.run_sql("update {schema}.products set active = true where id = 3")
        project.run_sql("insert into {schema}.products values (4, 'd', 'Di', true, 'y')")
        results = run_dbt(["run"])
        told = {result.node.name: result.adapter_response for result in results}
        assert (told["silver"]["rows_inserted"], told["silver"]["rows_deleted"]) == (2, 1)
        # `x` lost one product and gained another: its row stays as it is, and is not written.
        assert (told["gold"]["rows_updated"], told["gold"]["rows_inserted"]) == (1, 0)
        assert rows(project, "select code, name from {s}.silver") == [("b", "BOB"), ("c", "CY"), ("d", "DI")]
        assert rows(project, "select category, products from {s}.gold") == [("x", 1), ("y", 2)]
        assert rows(project, "select * from {s}.gold") == rows(project, "select * from {s}.narrow")

        again = run_dbt(["run", "-s", "silver", "gold"])
        assert [result.adapter_response["_message"] for result in again] == ["OK nothing new"] * 2

        # The table that is not followed is read as it is, and its own changes wait for those of the other.
        project.run_sql("update {schema}.categories set title = 'New' where category = 'x'")
        run_dbt(["run", "-s", "gold", "narrow"])
        assert ("x", "New") in rows(project, "select category, title from {s}.gold")
        assert ("x", "Ex") in rows(project, "select category, title from {s}.narrow")

        before = rows(project, "select * from {s}.gold")
        run_dbt(["run", "--full-refresh", "-s", "silver", "gold"])
        assert rows(project, "select * from {s}.gold") == before
        assert project.adapter.lake.log_of(f"{project.test_schema}.silver").properties["delta.enableChangeDataFeed"]

    def test_a_new_column_comes_along(self, project) -> None:
        run_dbt(["run", "-s", "silver"])
        path = Path(project.project_root) / "models" / "silver.sql"
        path.write_text(path.read_text().replace("category from", "category, id from"))
        project.run_sql("update {schema}.products set name = 'Dora' where id = 4")
        run_dbt(["run", "-s", "silver"])
        assert ("d", "DORA", 4) in rows(project, "select code, name, id from {s}.silver")

    def test_empty_leaves_it_alone(self, project) -> None:
        before = rows(project, "select * from {s}.silver")
        run_dbt(["run", "-s", "silver", "--empty"])
        assert rows(project, "select * from {s}.silver") == before


class TestWrongChangeModel:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"products.csv": PRODUCTS, "plain.csv": "id\n1\n", "seeds.yml": FEED.split(", {name: cat")[0] + "]"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        def model(select: str, **config: object) -> str:
            keys = "".join(f", {key}={value!r}" for key, value in {"unique_key": "id", **config}.items())
            return "{{ config(materialized='incremental', incremental_strategy='cdf_merge'" + keys + ") }} " + select

        products = "from {{ ref('products') }}"
        return {
            "keyless.sql": model(f"select id {products}", unique_key=None),
            "configured.sql": model(f"select id {products}", on_cdf_gap="ignore", cdf_max_versions=0),
            "mistyped.sql": model(f"select id {products}", cdf_max_version=3),
            "limited.sql": model(f"select id {products} limit 3"),
            "random.sql": model(f"select id, rand() as r {products}"),
            "counted.sql": model(f"select count(*) as id {products}"),
            "windowed.sql": model(f"select id, row_number() over (order by id) as n {products}"),
            "unfed.sql": model("select id from {{ ref('plain') }}"),
            "unknown.sql": model(f"select id {products}", unique_key="nope"),
            "elsewhere.sql": model(f"select id {products}", cdf_source="plain"),
            "doubled.sql": model(f"select 1 as id {products}"),
            "nulled.sql": model(f"select if(id = 2, null, id) as id, code {products}"),
        }

    def test_one_clear_error_each_and_no_table(self, project) -> None:
        run_dbt(["seed"])
        results = run_dbt(["run"], expect_pass=False)
        said = {result.node.name: result.message for result in results}
        for model, parts in {
            "keyless": ["`unique_key` is missing"],
            "configured": ["`on_cdf_gap`", "`cdf_max_versions`"],
            "mistyped": ["cdf_max_versions"],
            "limited": ["LIMIT"],
            "random": ["rand()"],
            "counted": ["aggregates without its key"],
            "windowed": ["looks across keys"],
            "unfed": ["ALTER TABLE", "delta.enableChangeDataFeed"],
            "unknown": ["nope"],
            "elsewhere": ["`cdf_source`", "does not read"],
            "doubled": ['{"id":1}', "more than once"],
            "nulled": ['{"id":null}'],
        }.items():
            for part in parts:
                assert part in said[model], (model, said[model])
            assert project.adapter.lake.find(Name(project.test_schema, model)) is None, model
