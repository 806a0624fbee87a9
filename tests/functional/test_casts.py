"""A SELECT of other types than its table: what is stored, and what a run says of it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture, write_file

from penstock.api import connect
from penstock.sql.casts import Verdict, convert, parse, verdict
from penstock.sql.names import Name
from tests.conftest import SESSION

# Of each type, values at its borders.
VALUES = {
    "tinyint": ["-128", "127", "0"],
    "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647", "16777217"],
    "bigint": ["-9223372036854775808L", "9223372036854775807L", "9007199254740993L"],
    "float": ["1.1f", "16777216f", "1e30f"],
    "double": ["1.1d", "2.5d", "1e300d"],
    "decimal(5,2)": ["123.45", "-999.99"],
    "decimal(9,0)": ["999999999"],
    "decimal(38,10)": ["1234567890123456789012345678.0123456789"],
    "boolean": ["true", "false"],
    "string": ["'x'", "'01'", "'2.5'"],
    "binary": ["x'ff00'", "x'41'"],
    "date": ["date'2026-02-28'", "date'0001-01-01'"],
    "timestamp": ["timestamp'2026-02-28 10:00:00.123456'"],
    "timestamp_ntz": ["timestamp_ntz'2026-02-28 10:00:00.123456'"],
    "struct<a:int,b:double>": ["named_struct('a', 1, 'b', 2.5d)", "cast(null as struct<a:int,b:double>)"],
    "struct<b:double,a:bigint>": ["named_struct('b', 2.5d, 'a', 1L)"],
    "array<int>": ["array(1, 2)"],
    "array<bigint>": ["array(1L, null)"],
    "map<string,int>": ["map('k', 1)"],
}


def test_the_verdicts_are_spark_s(tmp_path) -> None:
    """What is called lossless comes back as it went; what is called refused Spark refuses; nothing else is refused."""
    spark = connect(str(tmp_path), session=SESSION).spark
    lossless, wrong = [], []
    for made, have in product(VALUES, VALUES):
        found = verdict(parse(made), parse(have))
        there = convert(f"cast(null as {made})", parse(made), parse(have))
        try:
            spark.sql(f"select {there}")
            refused = False
        except Exception:
            refused = True
        if refused != (found is Verdict.REFUSED):
            wrong.append((made, have, found.name))
        if found is Verdict.LOSSLESS and "map" not in made:  # maps can't be compared
            lossless += [(made, have, value) for value in VALUES[made]]
    assert wrong == []
    items = []
    for index, (made, have, value) in enumerate(lossless):
        value = f"cast({value} as {made})"
        back = convert(convert(value, parse(made), parse(have)), parse(have), parse(made))
        items.append(f"{back} <=> {value} as c{index}")
    row = spark.sql(f"select {', '.join(items)}").collect()[0]
    assert [lossless[index] for index, same in enumerate(row) if not same] == []


FIRST = "1 as id, 1 as n, 1L as big, 'a' as day, named_struct('a', 1, 'b', 2) as s"
THEN = "2 as id, 2.5d as n, 7 as big, 'b' as day, named_struct('b', 4L, 'a', 3, 'c', 'new') as s"
SAID = (
    "n is double in the model and int in the table: fractions are cut off",
    "s.b is bigint in the model and int in the table: a value that is too large fails the run",
)
STRATEGIES = {
    "append": "incremental_strategy='append'",
    "merged": "unique_key='id'",
    "overwritten": "incremental_strategy='insert_overwrite', partition_by='day'",
    "deleted": "incremental_strategy='delete+insert', unique_key='id'",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=[\"day = 'b'\"]",
    "evolved": "unique_key='id', merge_with_schema_evolution=true",
}


def _model(config: str, policy: str, first: str = FIRST, then: str = THEN) -> str:
    return (
        f"{{{{ config(materialized='incremental', on_schema_change='{policy}', {config}) }}}}\n"
        f"select {{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"
    )


def rows(project, model: str, items: str = "id, n, s.*") -> list:
    found = project.run_sql(f"select {items} from {project.test_schema}.{model} order by id", fetch="all")
    return [tuple(row) for row in found]


def types(project, model: str) -> dict[str, str]:
    columns = project.adapter.lake.columns(Name(project.test_schema, model))
    return {column.name: column.type for column in columns}


class TestStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        models = {f"{name}.sql": _model(config, "ignore") for name, config in STRATEGIES.items()}
        return models | {
            "added.sql": _model("unique_key='id'", "append_new_columns"),
            "synced.sql": _model("unique_key='id'", "sync_all_columns"),
            "failing.sql": _model("unique_key='id'", "fail"),
            "narrowed.sql": _model("unique_key='id'", "sync_all_columns", "1 as id, 2.5d as n", "2 as id, 3 as n"),
            "refused.sql": _model("unique_key='id'", "ignore", "1 as id, 1 as n", "2 as id, array(1) as n"),
            "fewer.sql": _model("unique_key='id'", "ignore", FIRST, "2 as id, 2 as n, 7L as big, 'b' as day, "
                                "named_struct('b', 4) as s"),
        }  # fmt: skip

    def test_second_run(self, project) -> None:
        run_dbt(["run"])
        results, said = run_dbt_and_capture(["run"], expect_pass=False)
        status = {result.node.name: str(result.status) for result in results}
        assert {name for name, found in status.items() if found == "error"} == {"failing", "refused"}
        messages = {result.node.name: result.message for result in results}

        for model in STRATEGIES:
            line = next(line for line in said.splitlines() if f".{model}: n is" in line)
            assert all(part in line for part in SAID), line
            assert "big is" not in line, "an int is stored in a bigint as it is"
            if model == "evolved":
                assert rows(project, model) == [(1, 1, 1, 2, None), (2, 2, 3, 4, "new")]
                continue
            assert "s.c (string) is not in the table: its values are not stored" in line
            assert rows(project, model) == [(1, 1, 1, 2), (2, 2, 3, 4)], model
            assert types(project, model)["s"] == "struct<a:int,b:int>"

        line = next(line for line in said.splitlines() if ".added: n is" in line)
        assert all(part in line for part in SAID)
        assert rows(project, "added") == [(1, 1, 1, 2, None), (2, 2, 3, 4, "new")]
        assert types(project, "added")["s"] == "struct<a:int,b:int,c:string>"

        assert ".synced: " not in said
        assert rows(project, "synced") == [(1, 1.0, 2, 1, None), (2, 2.5, 4, 3, "new")]
        assert types(project, "synced")["n"] == "double"

        for part in ("out of sync", "'n'", "double", "int", "struct<a:int,b:int>"):
            assert part in messages["failing"], part
        assert "n was double and becomes int: fractions are cut off" in said
        assert "n is array<int> in the model and int in the table" in messages["refused"]
        assert "s.a (int) is not in the model: it is null in new rows" in said
        assert rows(project, "fewer", "id, s.a, s.b") == [(1, 1, 2), (2, None, 4)]


SNAPSHOT = """
{% snapshot snapped %}
{{ config(unique_key='id', strategy='check', check_cols='all') }}
select 1 as id, {{ var('n', '1') }} as n
{% endsnapshot %}
"""


class TestSnapshot:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapped.sql": SNAPSHOT}

    def test_a_lossy_cast_is_warned_about(self, project) -> None:
        run_dbt(["snapshot"])
        write_file(SNAPSHOT.replace("var('n', '1')", "var('n', '2.5d')"), "snapshots", "snapped.sql")
        _, said = run_dbt_and_capture(["snapshot"])
        assert "n is double in the model and int in the table: fractions are cut off" in said


WINDOWED = (
    "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='%s', batch_size='day', "
    "begin='2026-04-01', lookback=3, %s) }} select id, {{ 'n + 0.5d' if var('half', false) else 'n' }} as n, %s from %s"
)


class TestWindows:
    """Over tables and over files; in several windows a warning comes once."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        files = "source_path='landing/%Y/%m/%d/*.json', safety_buffer_seconds=0"
        return {
            "events.sql": "{{ config(materialized='table', event_time='at') }} select id, id as n, "
            "timestamp '2026-04-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) as at from range(3)",
            "tabled.sql": WINDOWED % ("at", "concurrent_batches=false", "at", "{{ ref('events') }}"),
            "filed.sql": WINDOWED % ("_date", files, "_date", "@data"),
            "synced.sql": WINDOWED % ("_date", f"{files}, on_schema_change='sync_all_columns'", "_date", "@data"),
        }

    def test_a_lossy_cast(self, project) -> None:
        for id in range(3):
            file = Path(project.project_root) / f"landing/2026/04/{id + 1:02}/a.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps({"id": id, "n": id}))
        with patch_microbatch_end_time("2026-04-04 00:00:00"):
            run_dbt(["run"])
            _, said = run_dbt_and_capture(["run", "--vars", "{half: true}", "-s", "tabled", "filed", "synced"])
        for model in ("tabled", "filed"):
            text = f".{model}: n is double in the model and bigint in the table: fractions are cut off"
            assert said.count(text) == 1, said
            assert rows(project, model, "id, n") == [(0, 0), (1, 1), (2, 2)]
        assert ".synced: n is" not in said
        assert rows(project, "synced", "id, n") == [(0, 0.5), (1, 1.5), (2, 2.5)]
