"""A seed is in the lake as it is in its file."""

from __future__ import annotations

import time

import pytest
from dbt.tests.util import run_dbt

AWKWARD = (
    "id,name,note,big,amount,flag,day,at\n"
    '1,O\'Brien,"two\nlines, a comma and ""quotes""",9007199254740993,1.5,true,2026-01-02,2026-01-02 03:04:05\n'
    "2,,back\\slash and {{ braces }},-9007199254740993,,false,,\n"
)


class TestSeeds:
    @pytest.fixture(scope="class")
    def seeds(self):
        many = "id,name\n" + "".join(f"{number},name {number}\n" for number in range(100_000))
        return {"awkward.csv": AWKWARD, "many.csv": many}

    def test_values_are_exact(self, project):
        run_dbt(["seed", "--select", "awkward"])
        query = "select id, name, note, big, amount, flag, cast(day as string), cast(at as string)"
        rows = project.run_sql(f"{query} from {project.test_schema}.awkward order by id", fetch="all")
        first = (1, "O'Brien", 'two\nlines, a comma and "quotes"', 9007199254740993, 1.5, True)
        assert tuple(rows[0]) == (*first, "2026-01-02", "2026-01-02 03:04:05")
        second = (2, None, "back\\slash and {{ braces }}", -9007199254740993, None, False)
        assert tuple(rows[1]) == (*second, None, None)

    def test_a_hundred_thousand_rows_take_seconds(self, project):
        started = time.monotonic()
        run_dbt(["seed", "--select", "many"])
        assert time.monotonic() - started < 60
        query = f"select count(*), sum(id), count(distinct name) from {project.test_schema}.many"
        assert tuple(project.run_sql(query, fetch="one")) == (100_000, 4_999_950_000, 100_000)
