"""`make soak MINUTES=60`: files arrive while runs overlap and get killed; at the end rows equal files, and nothing has grown.

One process runs again and again, and says how much memory it and its JVM have. Beside it other processes start, run at
the same time, and are killed at any moment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.api import Lake, connect
from penstock.delta.table import Table as Log
from penstock.sql.names import Name
from tests.places import PLACES, Place, open_place

NAME = "bronze.events"
_ROWS = 20
_SECONDS_BETWEEN_FILES, _SECONDS_BETWEEN_RUNS = 0.5, 15.0
_KILLED = 0.7
"""The share of the other processes that are killed; the rest of them ends by itself."""
_KEPT = {"max_files_per_trigger": 20, "source_compaction_interval": 10, "source_retention_files": 20}
_SESSION: dict[str, Any] = {"memory": "1g", "spark_config": {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}}
_GROWTH = 1.2
"""The memory of the last third of the samples, against that of the third before it."""


@dataclass
class Soak:
    """What happened so far."""

    place: Place
    folder: Path
    chance: random.Random
    files: int = 0
    started: int = 0
    killed: int = 0
    failed: list[str] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    """Of the process that goes on: seconds, and MB of Python and of its JVM."""

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def orders(self) -> dict[str, Any]:
        root, landing = (self.place.location(path) for path in (self.folder / "lake", self.landing))
        return {"connection": self.place.connection(_SESSION), "root": root, "landing": landing}

    def land(self, ended: threading.Event) -> None:
        """Files, until the end. A file is written beside and renamed, so that a listing sees whole files only."""
        while not ended.wait(self.chance.uniform(0, 2 * _SECONDS_BETWEEN_FILES)):
            ids = range(self.files * _ROWS, (self.files + 1) * _ROWS)
            beside = self.folder / "beside.json"
            beside.write_text("".join(json.dumps({"id": id}) + "\n" for id in ids))
            beside.rename(self.landing / f"{self.files:08}.json")
            self.files += 1

    def steady(self, process: subprocess.Popen[str]) -> None:
        """The lines of the process that goes on."""
        assert process.stdout is not None
        self.samples.extend(json.loads(line) for line in process.stdout if line.startswith("{"))

    def overlap(self, until: float) -> None:
        """Other processes, until the end: most of them are killed, at any moment of their lives."""
        while time.monotonic() < until:
            process = start({**self.orders, "steady": False}, self.folder / f"run-{self.started}.log")
            self.started += 1
            if self.chance.random() < _KILLED:
                time.sleep(self.chance.uniform(1, 2 * _SECONDS_BETWEEN_RUNS))
                self.killed += process.poll() is None
                kill(process)
            elif process.wait(600) != 0:
                self.failed.append((self.folder / f"run-{self.started - 1}.log").read_text()[-2000:])
            time.sleep(self.chance.uniform(0, 2))


def start(orders: dict[str, Any], log: Path) -> subprocess.Popen[str]:
    """A run in a process of its own, with a JVM of its own."""
    with log.open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak", "--child", json.dumps(orders)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if orders["steady"] else said,
            stderr=said,
            text=True,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[str]) -> None:
    """Python and its JVM at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


def child(orders: dict[str, Any]) -> None:
    """One run; with `steady`, one after the other for as long as the parent lives and no file `end` is there."""
    lake = connect(orders["root"], **orders["connection"])
    begun, parent = time.monotonic(), os.getppid()
    while True:
        lake.ingest(NAME, roots=[orders["landing"]], safety_buffer_seconds=0, **_KEPT)
        if not orders["steady"]:
            return
        print(json.dumps({"seconds": time.monotonic() - begun, **memory()}), flush=True)
        if Path(orders["end"]).exists() or os.getppid() != parent:
            return
        time.sleep(1)


def memory() -> dict[str, float]:
    """Megabytes that this process and its JVM have now."""
    from penstock.spark.internals.process import gateway

    jvm = gateway().proc.pid
    # Spark's script becomes the JVM, so there is one process.
    return {"python": resident(os.getpid()), "jvm": resident(jvm)}


def resident(process: int) -> float:
    status = Path("/proc", str(process), "status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def growth(samples: list[float]) -> float:
    """The median of the last third of the samples, as a ratio to that of the third before it."""
    third = len(samples) // 3
    return median(samples[-third:]) / median(samples[-2 * third : -third]) if third else 1.0


def check(soak: Soak, lake: Lake) -> list[str]:
    """Print what is there at the end; the promises that were broken."""
    broken = [f"a run failed that nothing had killed: {text}" for text in soak.failed]
    table = soak.folder / "lake" / "bronze" / "events"
    rows, ids = lake.sql(f"select count(*), count(distinct id) from {NAME}").first()
    wanted = soak.files * _ROWS
    if (rows, ids) != (wanted, wanted):
        broken.append(f"{rows:,} rows and {ids:,} ids, and not {wanted:,}")
    version = Log.open(lake.location_of(Name.parse(NAME)), lake.storage_options, files=False).version
    commits, log = version + 1, len(list((table / "_delta_log").iterdir()))
    ledger = len(list((table / "_checkpoint").rglob("*")))
    hidden = [path for path in (soak.folder / "lake").rglob(".*") if path.suffix != ".crc"]
    # A commit, its checksum with Hadoop's, and a checkpoint of every tenth commit with its own.
    if log > 4.5 * commits + 10:
        broken.append(f"{log:,} files in the log of {commits:,} commits")
    if ledger > 4 * (_KEPT["source_retention_files"] + _KEPT["source_compaction_interval"]):
        broken.append(f"{ledger:,} files in the ledger")
    if hidden:
        broken.append(f"hidden files are left: {hidden[:5]}")
    grown = {kind: growth([sample[kind] for sample in soak.samples]) for kind in ("python", "jvm")}
    broken += [f"the memory of {kind} grew {ratio:.2f} times" for kind, ratio in grown.items() if ratio > _GROWTH]

    shown = Table(title=f"soak on {soak.place.name}")
    for heading in ("files", "rows", "runs beside", "killed", "commits", "log files", "ledger files", "data files"):
        shown.add_column(heading)
    data = sum(1 for _ in table.glob("*.parquet"))
    shown.add_row(*(f"{n:,}" for n in (soak.files, rows, soak.started, soak.killed, commits, log, ledger, data)))
    console = Console(width=140)
    console.print(shown)
    shown = Table(title=f"memory of the process that ran {len(soak.samples)} times, MB (medians of each tenth)")
    for heading in ("", *(f"{tenth * 10} %" for tenth in range(1, 11)), "last third / second"):
        shown.add_column(heading)
    for kind, ratio in grown.items():
        values = [sample[kind] for sample in soak.samples]
        tenths = [values[len(values) * n // 10 : max(len(values) * (n + 1) // 10, 1)] for n in range(10)]
        shown.add_row(kind, *(f"{median(tenth):.0f}" if tenth else "" for tenth in tenths), f"{ratio:.2f}×")
    console.print(shown)
    return broken


def soak(place: Place, folder: Path, minutes: float, seed: int) -> list[str]:
    """The promises that were broken."""
    soak = Soak(place, folder, random.Random(seed))
    soak.landing.mkdir()
    ended, end = threading.Event(), folder / "end"
    steady = start({**soak.orders, "steady": True, "end": str(end)}, folder / "steady.log")
    threads = [
        threading.Thread(target=soak.land, args=(ended,)),
        threading.Thread(target=soak.steady, args=(steady,)),
    ]
    for thread in threads:
        thread.start()
    try:
        soak.overlap(time.monotonic() + minutes * 60)
    finally:
        ended.set()
        threads[0].join()
        end.touch()
        try:
            steady.wait(600)
        finally:
            kill(steady)
            threads[1].join()
    if steady.returncode != 0:
        soak.failed.append((folder / "steady.log").read_text()[-2000:])
    lake = connect(soak.orders["root"], **soak.orders["connection"])
    lake.ingest(NAME, roots=[soak.orders["landing"]], safety_buffer_seconds=0, **_KEPT)
    return check(soak, lake)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--on", choices=list(PLACES), default="local")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    print(f"{given.minutes:g} minutes on {given.on}, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, open_place(given.on, Path(folder)) as place:
        broken = soak(place, Path(folder), given.minutes, given.seed)
    for promise in broken:
        print(f"BROKEN: {promise}")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
