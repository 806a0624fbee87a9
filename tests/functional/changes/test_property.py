"""Random histories of the sources, random models: the incremental table is the table that a full refresh would build."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import ClassVar

import pytest

from penstock import PenstockError
from tests.conftest import SESSION, USERS_SESSION
from tests.functional.changes.conftest import World
from tests.places import Place

SEQUENCES = int(os.environ.get("PENSTOCK_SEQUENCES", "40"))
"""How many histories; `make chaos` sets 500 or more."""
TOGETHER = 5
"""So many models follow one history, a sequence each."""
LONG = SEQUENCES > 100
SEED = int(os.environ.get("PENSTOCK_SEED", time.time_ns() % 1_000_000))

# Each with its key. `a` and `b` have (id, part) as their key; everything else may be null, on every level.
MODELS: list[tuple[str, list[str]]] = [
    ("select id, part, name as title, n * 2 as n2 from {s}.a", ["id", "part"]),
    ("select * from {s}.a where n > 5 or name is null", ["id", "part"]),
    (
        "select id, part, cast(n as string) as text, "
        "to_json(struct(*), map('ignoreNullFields', 'false')) as row from {s}.a",
        ["id", "part"],
    ),
    ("select concat(id, '-', part) as code, name from {s}.v where n is not null", ["code"]),
    ("select id, part, info.* from {s}.a", ["id", "part"]),
    (
        "select id, part, info.place as place, size(info.many) as c, named_struct('n', n, 'notes', notes) as packed, "
        "array(name, info.place) as names from {s}.a where n < 80 or info is null",
        ["id", "part"],
    ),
    (
        "select a.id, a.part, b.info, map_keys(a.notes) as notes from {s}.a a join {s}.b b "
        "on a.id = b.id and a.part = b.part and a.info <=> b.info",
        ["id", "part"],
    ),
    (
        "select 'a' as origin, id, part, n from {s}.a where n < 50 "
        "union all select 'b', id, part, n from {s}.b where name <> 'x'",
        ["origin", "id", "part"],
    ),
    ("select a.id, a.part, a.name, b.name as other, b.n from {s}.a a join {s}.b b on a.id = b.id and a.part = b.part", ["id", "part"]),
    (
        "with one as (select * from {s}.v), two as (select id as bid, part as bpart, n as bn from {s}.b where n > 3) "
        "select one.id, one.part, two.bpart, one.name, bn from one join two on id = bid",
        ["id", "part", "bpart"],
    ),
    ("select x.id, x.part, y.part as other, y.n from {s}.a x join {s}.a y on x.id = y.id where x.n >= y.n", ["id", "part", "other"]),
    ("select a.id, a.part, a.n, b.name from {s}.a a left join {s}.b b on a.id = b.id and a.part = b.part", ["id", "part"]),
    (
        "select a.id, a.part, a.n from {s}.a a left join {s}.b b on a.id = b.id and a.part = b.part where b.id is null",
        ["id", "part"],
    ),
    ("select a.* from {s}.a a left anti join {s}.b b on a.id = b.id and b.n > 20", ["id", "part"]),
    ("select a.* from {s}.a a left semi join {s}.b b on a.id = b.id and b.n > 20", ["id", "part"]),
    ("select id, count(*) as c, sum(n) as n, max(name) as top from {s}.a group by id", ["id"]),
    ("select id, part % 2 as odd, sum(n) as n from {s}.v group by 1, part % 2 having sum(n) > 10", ["id", "odd"]),
    (
        "select a.id, count(b.id) as c, sum(b.n) as n from {s}.a a left join {s}.b b on a.id = b.id group by a.id",
        ["id"],
    ),
    (
        "with totals as (select id, sum(n) as total from {s}.b group by id) "
        "select a.id, a.part, t.total from {s}.a a left join totals t on t.id = a.id",
        ["id", "part"],
    ),
    ("select b.id, b.part, a.n, b.name from {s}.a a right join {s}.b b on a.id = b.id and a.part = b.part", ["id", "part"]),
    ("select id, part from {s}.a where n < 50 except select id, part from {s}.b", ["id", "part"]),
    ("select * from (select id, part, n from {s}.a) pivot (sum(n) for part in (0 as p0, 1 as p1))", ["id"]),
    (
        "select coalesce(a.id, b.id) as id, coalesce(a.part, b.part) as part, a.n as an, b.n as bn "
        "from {s}.a a full outer join {s}.b b on a.id = b.id and a.part = b.part",
        ["id", "part"],
    ),
    (
        "select id, part, name, n from (select *, row_number() over (partition by id order by n desc, part) as place "
        "from {s}.a) where place = 1",
        ["id"],
    ),
    ("select distinct id, part from {s}.a where exists (select 1 from {s}.b where b.id = a.id)", ["id", "part"]),
]  # fmt: skip

COLUMNS = "id, part, name, n, info, notes"
FEED = "delta.enableChangeDataFeed"
# How the table takes its changes: by the places of its rows, five times out of six; with a feed of its own; by a MERGE.
WAYS: list[dict[str, str]] = [{}, {}, {}, {}, {FEED: "true"}, {"delta.enableDeletionVectors": "false"}]


class History:
    """What may happen to the tables `a` and `b`; the key (id, part) stays unique, the rest is free."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.added: set[str] = set()
        for table in ("a", "b"):
            world.sql(
                "create table {s}."
                + table
                + f" {{feed}} as select {COLUMNS} from values "
                + ", ".join(self._row(id, part) for id in range(6) for part in range(2))
                + f" as t({COLUMNS})"
            )
        world.lake.sql(
            f"create view {world.schema}.v as select id, part, upper(name) as name, n from {world.schema}.a where id <> 3"
        )

    def step(self) -> str:
        table = self.chance.choice(["a", "a", "b"])
        act = self.chance.choices(list(self._acts), [weight for weight, _ in self._acts.values()])[0]
        self._acts[act][1](self, table)
        return f"{act} {table}"

    def _name(self) -> str:
        return self.chance.choice(["'x'", "'y'", "'Zoë'", "''", "cast(null as string)"])

    def _n(self) -> str:
        return self.chance.choice(
            ["cast(null as int)", str(self.chance.randrange(100)), str(self.chance.randrange(10))]
        )

    def _info(self) -> str:
        many = self.chance.choice(["array()", f"array(1, {self._n()})", "null"])
        some = f"named_struct('place', {self._name()}, 'many', {many})"
        return f"cast({self.chance.choice([some, some, 'null'])} as struct<place: string, many: array<int>>)"

    def _notes(self) -> str:
        notes = self.chance.choice(["map()", f"map('a', {self._n()})", f"map('b', 1, 'a', {self._n()})", "null"])
        return f"cast({notes} as map<string, int>)"

    def _row(self, id: int, part: int) -> str:
        return f"({id}, {part}, {self._name()}, {self._n()}, {self._info()}, {self._notes()})"

    def _where(self) -> str:
        return self.chance.choice([
            f"id = {self.chance.randrange(8)}", f"n > {self.chance.randrange(100)}", "name is null",
            f"part = {self.chance.randrange(3)}", f"id = {self.chance.randrange(8)} and part = {self.chance.randrange(3)}",
        ])  # fmt: skip

    def _do(self, text: str) -> None:
        self.world.sql(text)

    def insert(self, table: str) -> None:
        pairs = {(self.chance.randrange(9), self.chance.randrange(3)) for _ in range(self.chance.randrange(1, 4))}
        rows = ", ".join(self._row(*pair) for pair in pairs)
        self._do(
            f"insert into {{s}}.{table} ({COLUMNS}) select * from values {rows} as v({COLUMNS}) "
            f"where not exists (select 1 from {{s}}.{table} t where t.id = v.id and t.part = v.part)"
        )

    def update(self, table: str) -> None:
        values = {"name": self._name(), "n": self._n(), "info": self._info(), "notes": self._notes()}
        chosen = self.chance.sample(sorted(values), self.chance.randrange(1, 5))
        self._do(
            f"update {{s}}.{table} set {', '.join(f'{name} = {values[name]}' for name in chosen)} where {self._where()}"
        )

    def delete(self, table: str) -> None:
        self._do(f"delete from {{s}}.{table} where {self._where()}")

    def merge(self, table: str) -> None:
        pairs = {(self.chance.randrange(9), self.chance.randrange(3)) for _ in range(3)}
        rows = ", ".join(self._row(*pair) for pair in pairs)
        self._do(
            f"merge into {{s}}.{table} t using (select * from values {rows} as v({COLUMNS})) v "
            "on t.id = v.id and t.part = v.part when matched and v.n > 50 then delete "
            "when matched then update set name = v.name, n = v.n, notes = v.notes "
            f"when not matched then insert ({COLUMNS}) values (v.id, v.part, v.name, v.n, v.info, v.notes)"
        )

    def overwrite(self, table: str) -> None:
        self._do(f"insert overwrite {{s}}.{table} select * from {{s}}.{table} where {self._where()} or id < 4")

    def swap_keys(self, table: str) -> None:
        self._do(f"update {{s}}.{table} set part = case part when 0 then 1 when 1 then 0 else part end")

    def move_keys(self, table: str) -> None:
        one, other = self.chance.sample(range(9), 2)
        self._do(
            f"update {{s}}.{table} set id = case id when {one} then {other} else {one} end where id in ({one}, {other})"
        )

    def add_column(self, table: str) -> None:
        if table in self.added:
            return self.insert(table)
        self.added.add(table)
        self._do(f"alter table {{s}}.{table} add columns (extra string)")

    def optimize(self, table: str) -> None:
        self._do(f"optimize {{s}}.{table}")

    def properties(self, table: str) -> None:
        self._do(f"alter table {{s}}.{table} set tblproperties ('note' = '{self.chance.random()}')")

    def replace(self, table: str) -> None:
        self._do(
            f"create or replace table {{s}}.{table} {{feed}} as select * from {{s}}.{table} where {self._where()} or part = 0"
        )

    def retype(self, table: str) -> None:
        n = f"cast(n as {self.chance.choice(['int', 'bigint', 'double'])}) as n"
        self._do(f"create or replace table {{s}}.{table} {{feed}} as select * except (n), {n} from {{s}}.{table}")

    def restore(self, table: str) -> None:
        version = self.world.log(table).version
        self._do(
            f"restore table {{s}}.{table} to version as of {self.chance.randrange(max(0, version - 5), version + 1)}"
        )
        self.added.discard(table)
        if "extra" in {column.name for column in self.world.log(table).columns}:
            self.added.add(table)

    _acts: ClassVar[dict[str, tuple[int, Callable[[History, str], None]]]] = {
        "insert": (6, insert), "update": (6, update), "delete": (4, delete), "merge": (3, merge),
        "overwrite": (2, overwrite), "swap": (2, swap_keys), "move": (3, move_keys), "column": (1, add_column),
        "optimize": (1, optimize), "properties": (1, properties), "replace": (1, replace), "retype": (1, retype),
        "restore": (2, restore),
    }  # fmt: skip


@pytest.mark.parametrize("number", range(-(-SEQUENCES // TOGETHER)))
def test_incremental_is_full(tmp_path, place: Place, number: int) -> None:
    seed = SEED + number
    print(f"PENSTOCK_SEED={seed} PENSTOCK_SEQUENCES={TOGETHER}")
    chance = random.Random(seed)
    # As a user's Spark runs them, and without generated code and adaptive execution, by turns.
    world = World(tmp_path, SESSION if number % 2 else USERS_SESSION, place)
    history = History(world, chance)
    # Every model has its turn, the number of the history decides which.
    models = [MODELS[(seed * TOGETHER + index) % len(MODELS)] for index in range(TOGETHER)]
    options = [{"cdf_max_versions": chance.choice([2, 3, 7])} if chance.random() < 0.2 else {} for _ in models]
    ways = [chance.choice(WAYS) for _ in models]
    told: list[str] = []
    for turn in range(3 if LONG else 2):
        many = chance.randrange(1, 51) if LONG and chance.random() < 0.1 else chance.randrange(1, 6)
        if turn == 0:
            many = 0
        told += [history.step() for _ in range(many)] + ["run"]
        for index, (select, key) in enumerate(models):
            target = f"{world.schema}.t{index}"
            try:
                way = {"on_schema_change": "sync_all_columns", "properties": ways[index]}
                world.merge(select, key, target, **way, **options[index])
                if turn:
                    world.check(select, target)
                if FEED in ways[index]:
                    # What the table's own feed tells is followed as well.
                    world.merge(f"select * from {target}", key, f"{target}_next", on_schema_change="sync_all_columns")
                    world.check(select, f"{target}_next")
            except (AssertionError, PenstockError) as error:
                raise AssertionError(f"after {told}, {select} {options[index]} {ways[index]}: {error}") from error
            assert world.merge(select, key, target, **options[index]).nothing_new
