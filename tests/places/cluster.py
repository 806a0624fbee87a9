"""Spark on a cluster of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from penstock.spark import session
from penstock.spark.internals.process import running_context
from penstock.spark.startup.java import find_spark_home
from tests.places.place import Compute

HOST = "127.0.0.1"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_SECONDS_TO_START = 120
_SECONDS_TO_END = 20


class Cluster(Compute):
    """One master and workers on loopback, with one core each: processes as on machines of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where the servers log, and the executors work."""
        self.master = f"spark://{HOST}:{_free_port()}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._page = f"http://{HOST}:{_free_port()}"

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Cluster]:
        """Its logs and the executors' folders are beside the tests' own folders."""
        cluster = cls(folder / "spark-cluster")
        cluster.folder.mkdir()
        with ExitStack() as ends:
            ends.callback(cluster.end)
            cluster.start_master()
            cluster.start_worker()
            cluster.start_worker()
            cluster.wait_for_workers(2)
            yield cluster
            cluster.check_and_stop_spark()

    @property
    def session(self) -> dict[str, Any]:
        return {
            "master": self.master,
            "driver_host": HOST,
            "memory": "2g",
            # Executors of the tests are as small as their tables.
            "spark_config": {"spark.executor.memory": "800m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC"},
        }

    def start_master(self) -> None:
        port, page = self.master.rpartition(":")[2], self._page.rpartition(":")[2]
        self._start("master", "Master", "--host", HOST, "--port", port, "--webui-port", page)

    def start_worker(self) -> None:
        """One more worker; it may take a second until the master knows it."""
        self._started += 1
        work = self.folder / f"worker-{self._started}"
        arguments = ["--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
        self.workers.append(self._start(work.name, "Worker", *arguments, self.master))

    def wait_for_workers(self, number: int) -> None:
        """Wait until the master counts so many living workers."""
        until = time.monotonic() + _SECONDS_TO_START
        while (found := self._living_workers()) != number:
            if time.monotonic() > until or any(process.poll() is not None for process in self._processes[:1]):
                logs = "".join(log.read_text(errors="replace")[-1500:] for log in sorted(self.folder.glob("*.log")))
                raise pytest.UsageError(f"The cluster has {found} workers and not {number}: {logs}")
            time.sleep(0.1)

    def executors(self) -> list[int]:
        """The process ids of the executors that run now."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                # Whatever became of its worker, an executor works in that one's folder.
                if process.name.isdigit() and os.readlink(process / "cwd").startswith(f"{self.folder}/worker-"):
                    found.append(int(process.name))
            except OSError:  # it has ended, or is another user's
                continue
        found = [process for process in found if _EXECUTOR in command_line(process)]
        return sorted(found)

    def kill_worker(self) -> None:
        """Kill the first worker; the executor notices, and ends."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait(_SECONDS_TO_END)
        self._processes.remove(worker)

    def check_and_stop_spark(self) -> None:
        """End this process's Spark while its master is there; an error if the tests ran on another one."""
        if (context := running_context()) is not None:
            master = context.master
            session.stop()
            assert master == self.master, f"the tests ran on {master} and not on {self.master}"

    def end(self) -> None:
        """End what this cluster started, with the executors."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_SECONDS_TO_END)
        # A worker that was killed has left its executor.
        for executor in self.executors():
            os.kill(executor, signal.SIGKILL)
        for work in self.folder.glob("worker-*/"):
            shutil.rmtree(work, ignore_errors=True)

    def _start(self, name: str, server: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = find_spark_home()
        command = [str(Path(home, "bin", "spark-class")), f"org.apache.spark.deploy.{server.lower()}.{server}"]
        environment = {
            **os.environ,
            "SPARK_HOME": home,
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self.folder / f"{name}.log").open("wb") as sink:
            # `spark-class` becomes the server, so this is the server's own process.
            process = subprocess.Popen([*command, *arguments], stdout=sink, stderr=sink, env=environment)
        self._processes.append(process)
        return process

    def _living_workers(self) -> int:
        try:
            with urlopen(f"{self._page}/json/", timeout=5) as answer:
                workers = json.load(answer)["workers"]
        except OSError:
            return 0
        return sum(worker["state"] == "ALIVE" for worker in workers)


def command_line(process: int) -> list[str]:
    """The arguments that a process was started with, as every user of the machine can read them."""
    try:
        return Path("/proc", str(process), "cmdline").read_text(errors="replace").split("\0")
    except OSError:  # it has ended
        return []


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
