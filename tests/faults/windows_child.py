"""One run of a microbatch model in a process of its own, which dies at the step that its orders name.

python windows_child.py '{"root": …, "name": …, "windows": ["2026-04-01", "2026-04-09"], "kill": "write", "nth": 3}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from penstock.api import connect
from penstock.delta.layout import Layout
from penstock.spark.runner import Runner
from penstock.sql.names import Name
from penstock.windows import Request, TableSelect, Target, Window, WindowRun, WindowSettings
from penstock.windows.filters import Filter
from tests.faults.child import join_jvm

CONFIG = {"event_time": "at", "batch_size": "day", "begin": "2026-04-01"}


def main(orders: dict) -> None:
    if orders.get("gateway"):
        join_jvm(*orders["gateway"])
    seen: dict[str, int] = {}

    def step(name: str) -> None:
        seen[name] = seen.get(name, 0) + 1
        if name == orders.get("kill") and seen[name] == orders.get("nth", 1):
            os.kill(os.getpid(), signal.SIGKILL)

    lake, name = connect(orders["root"], session=orders["session"]), Name.parse(orders["name"])
    settings = WindowSettings.from_config({**CONFIG, **orders.get("config", {})})
    windows = tuple(Window.of(*orders["windows"]).steps("day"))
    said: list[str] = []
    layout = Layout(partition_by=("at",)) if orders.get("partitioned") else Layout()
    request = Request(windows, named=orders.get("named", False), full_refresh=orders.get("full_refresh", False))
    # A session for each thread, as dbt has them.
    target = Target(lake, name, settings, layout, Runner(lake, lake.settings))
    run = WindowRun(target, request, warn=said.append, step=step)

    def one(window: Window) -> None:
        marked = Filter(orders["source"], "at", window.start, window.end).marked()
        text = f"select id, at from {orders['source']} where {marked}"
        mine = Target(lake, name, settings, layout, Runner(lake, lake.settings))
        run.run(window, mine, TableSelect(lake, text, window, fixed=False))

    if orders.get("ready"):
        lake.spark.sql("select 1").collect()
        print("ready", flush=True)
    one(windows[0])
    with ThreadPoolExecutor(orders.get("threads", 1)) as pool:
        list(pool.map(one, windows[1:]))
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
