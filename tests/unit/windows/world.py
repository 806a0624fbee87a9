from __future__ import annotations

import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock.api import connect
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Column
from penstock.errors import PenstockError
from penstock.sql.names import Name
from penstock.windows import Outcome, Request, Target, Window, WindowRun, WindowSettings
from penstock.windows.query import RenderedSelect

DAY = timedelta(days=1)
FIRST = datetime(2026, 4, 1, tzinfo=timezone.utc)
_WINDOW = re.compile(r"rows of (\S+) (\S+)")


class Killed(BaseException):
    pass


class RowsSelect:
    """A model over rows that the test holds; the text names the window, and the runner below knows it."""

    def __init__(self, world: World, text: str = "") -> None:
        self.world = world
        self.text = text

    def schema(self, window: Window, known: Any) -> Any:
        return None

    def is_empty(self, window: Window) -> bool:
        return self.world.by_files and (not self.world.of(window) or not self.is_settled(window))

    def is_settled(self, window: Window) -> bool:
        return not any(window.start <= moment < window.end for moment in self.world.unsettled)

    def over(self, window: Window, schema: Any) -> RenderedSelect:
        return RenderedSelect(f"{self.text}rows of {window.start.isoformat()} {window.end.isoformat()}", True)

    def same_as(self, other: Any) -> bool:
        return self.text == other.text


class RustRunner:
    """delta-rs in Spark's place: the protocol at the speed of a unit test."""

    def __init__(self, world: World) -> None:
        self.world = world

    def columns_of(self, text: str) -> list[Column]:
        return [Column("id", "bigint"), Column("at", "timestamp")]

    commit_marks = None

    def check_commits(self, location: str) -> None:
        pass

    def create_table(self, name: Name, query: str, layout: Layout, conf: dict[str, str]) -> None:
        self.run(f"create or replace table {name}\n{layout.clauses()}\nas\n{query}", conf)

    def run(self, text: str, conf: dict[str, str]) -> None:
        window = self._window(text)
        number = int(conf["spark.databricks.delta.write.txnVersion"])
        marks = [Transaction(MARK, number)]
        note = conf["spark.databricks.delta.commitInfo.userMetadata"]
        rows = self._rows(window).slice(0, 0 if "where false" in text else None)
        location = str(self.world.table)
        if text.startswith("create or replace"):
            properties = dict(re.findall(r"'(penstock\.\w+)' = '([^']+)'", text))
            # Spark makes the table and fills it in one commit, which delta-rs can't: good enough for one process.
            DeltaTable.create(
                location,
                schema=rows.schema,
                mode="overwrite",
                partition_by=["at"] if self.world.partitioned else None,
                configuration=properties,
                commit_properties=CommitProperties(custom_metadata={"userMetadata": note}),
                raise_if_key_not_exists=False,
            )
            mode = "overwrite"
        else:
            mode = "append"
            if DeltaTable(location).transaction_version(MARK) >= number:
                return
        self._commit(rows, mode, note, marks)

    def replace_where(self, query: str, relation: Any, condition: str, note: str) -> None:
        window = self._window(query)
        with self.world.one_commit:
            table = DeltaTable(relation.location)
            kept = [row for row in table.to_pyarrow_table().to_pylist() if not window.start <= row["at"] < window.end]
            rows = pa.concat_tables([pa.Table.from_pylist(kept, schema=self._rows(window).schema), self._rows(window)])
            self._commit(rows, "overwrite", note, [])

    def _commit(self, rows: pa.Table, mode: str, note: str, marks: list[Transaction]) -> None:
        properties = CommitProperties(app_transactions=marks or None, custom_metadata={"userMetadata": note})
        write_deltalake(str(self.world.table), rows, mode=mode, commit_properties=properties)

    def _window(self, text: str) -> Window:
        window = Window.of(*_WINDOW.search(text).groups())
        with self.world.one_commit:
            self.world.jobs.append(window)
        if window.start in self.world.broken:
            raise PenstockError(f"broken {window}")
        return window

    def _rows(self, window: Window) -> pa.Table:
        rows = self.world.of(window)
        times = pa.array([at for _, at in rows], pa.timestamp("us", "UTC"))
        return pa.table({"id": pa.array([id for id, _ in rows], pa.int64()), "at": times})


class World:
    """Rows with times, a table that they go into by windows, and a dbt that runs them."""

    def __init__(self, folder: Path) -> None:
        self.lake = connect(str(folder / "lake"))
        self.table = folder / "lake" / "silver" / "events"
        self.rows: list[tuple[int, datetime]] = []
        self.jobs: list[Window] = []
        self.broken: set[datetime] = set()
        self.config: dict[str, Any] = {"event_time": "at", "batch_size": "day", "begin": FIRST}
        self.by_files = False
        self.unsettled: set[datetime] = set()
        self.partitioned = False
        self.one_commit = threading.Lock()
        self.said: list[str] = []
        self.clock = FIRST

    def happen(self, day: int, count: int = 1) -> None:
        for number in range(count):
            self.rows.append((len(self.rows), FIRST + day * DAY + timedelta(hours=number % 24)))

    def of(self, window: Window) -> list[tuple[int, datetime]]:
        return [(id, at) for id, at in self.rows if window.start <= at < window.end]

    def windows(self, now: datetime, *, lookback: int = 1, full: bool = False) -> tuple[Window, ...]:
        """As dbt has them, the open one included."""
        end = now.replace(hour=0) + DAY if now.hour else now
        start = end - (lookback + 1) * DAY if self.made and not full else FIRST
        return tuple(Window(start, end).steps("day"))

    @property
    def made(self) -> bool:
        return any((self.table / "_delta_log").glob("*.json"))

    def run(
        self,
        now: datetime,
        *,
        named: tuple[int, int] | None = None,
        full_refresh: bool = False,
        kill: tuple[str, int] | None = None,
        threads: int = 1,
        packed: bool = True,
        empty: bool = False,
        windows: tuple[Window, ...] | None = None,
        text: Any = lambda window: "",
        **config: Any,
    ) -> dict[Window, Outcome | Exception]:
        """What dbt does: the first window alone, the others side by side, the last alone."""
        seen: Counter[str] = Counter()

        def step(name: str) -> None:
            seen[name] += 1
            if kill is not None and kill[0] == name and seen[name] >= kill[1]:
                raise Killed(name)

        self.said = []
        if windows is None:
            windows = self.windows(now, full=full_refresh)
        if named is not None:
            windows = tuple(Window(FIRST + named[0] * DAY, FIRST + named[1] * DAY).steps("day"))
        settings = WindowSettings.from_config({**self.config, **config})
        name = Name("silver", "events")
        target = Target(self.lake, name, settings, Layout(), RustRunner(self))
        request = Request(windows, named=named is not None, full_refresh=full_refresh, packed=packed, empty=empty)
        results: dict[Window, Outcome | Exception] = {}
        run = WindowRun(target, request, warn=self.said.append, step=step)

        def one(window: Window) -> None:
            try:
                results[window] = run.run(window, target, RowsSelect(self, text(window)))
            except Exception as error:
                results[window] = error

        one(windows[0])
        if isinstance(results[windows[0]], Exception):
            return results
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(one, window) for window in windows[1:-1]]:
                done.result()
        if len(windows) > 1:
            one(windows[-1])
        return results

    def held(self) -> Counter[int]:
        return Counter(DeltaTable(str(self.table)).to_pyarrow_table()["id"].to_pylist()) if self.made else Counter()

    def check(self, before: datetime) -> None:
        """The table is what one clean run would have made of the rows before a moment."""
        assert self.held() == Counter(id for id, at in self.rows if at < before)
