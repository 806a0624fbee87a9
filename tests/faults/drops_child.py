"""Drops, renames, clones or runs in a process of its own, which dies at the step that its orders name.

python drops_child.py '{"root": …, "do": "clone", "source": "a.b", "target": "a.c", "kill": "cloned"}'
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable

from penstock.api import Lake, connect
from penstock.errors import PenstockError
from penstock.lake import disk
from penstock.sql.names import Name
from tests.faults.child import join_jvm


def main(orders: dict) -> None:
    if orders.get("gateway"):
        join_jvm(*orders["gateway"])
    if orders.get("no_exchange"):
        disk._exchanged = lambda one, other: False  # a disk that can't
    lake = connect(orders["root"], session=orders["session"])
    work = _work(lake, orders, lambda name: _die(name, orders))
    if orders.get("ready"):
        print("ready", flush=True)
    if "until" not in orders:
        work()
        return
    done: dict[str, int] = {}
    while time.time() < orders["until"]:
        try:
            work()
            said = "done"
        except PenstockError as error:
            # Others drop and replace what this one works on: that may be said, in the words of an error for people.
            said = str(error).split("(", 1)[0].split(":", 1)[0]
        done[said] = done.get(said, 0) + 1
        time.sleep(random.uniform(0, orders.get("pause", 0)))
    print(json.dumps(done), flush=True)


def _work(lake: Lake, orders: dict, step: Callable[[str], None]) -> Callable[[], object]:
    source, target = (Name.parse(orders.get(key, "a.b")) for key in ("source", "target"))
    if orders["do"] == "drop":
        return lambda: lake.drop(source, missing_ok=True, step=step)
    if orders["do"] == "rename":
        return lambda: lake.rename(source, target, step=step)
    if orders["do"] == "clone":
        return lambda: lake.clone(source, target, step=step)
    keys = {"max_files_per_trigger": 2, "safety_buffer_seconds": 0}
    return lambda: lake.ingest(str(source), roots=[orders["landing"]], **keys)


def _die(name: str, orders: dict) -> None:
    if name == orders.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
