"""The temporary folders of Spark, and their sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from penstock.spark.startup import temporary

DEAD = 2**22 + 1
"""A process id that no process has."""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def make(shared: Path, name: str, *, days: float = 0) -> Path:
    folder = shared / name
    folder.mkdir()
    (folder / "spark.log").write_text("")
    for path in (folder / "spark.log", folder):
        when = path.stat().st_mtime - days * 24 * 3600
        os.utime(path, (when, when))
    return folder


def test_a_folder_of_a_living_process_is_not_swept_whatever_its_id_says(shared: Path) -> None:
    """Of another container, where this id is nobody's."""
    folder = Path(temporary.TemporaryFolder().path)
    foreign = folder.rename(shared / f"penstock-{DEAD}-abc")
    for path in (*foreign.iterdir(), foreign):
        os.utime(path, (0, 0))
    temporary.sweep()
    assert foreign.exists()


HOLDER = """
import subprocess, sys
from penstock.spark.startup.temporary import TemporaryFolder
folder = TemporaryFolder()
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
child = subprocess.Popen(["sleep", "60"], pass_fds=folder.descriptors, **quiet)
print(folder.path, child.pid, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_swept_when_its_process_and_that_ones_jvm_have_ended(shared: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(shared)},
    )
    assert process.stdout is not None
    path, child = process.stdout.readline().split()
    (Path(path) / "blockmgr" / "00").mkdir(parents=True)
    try:
        temporary.sweep()
        assert Path(path).exists()
        process.kill()
        process.communicate()
        temporary.sweep()
        assert Path(path).exists(), "its JVM still writes there"
    finally:
        os.kill(int(child), signal.SIGKILL)
    for _ in range(100):
        temporary.sweep()
        if not Path(path).exists():
            return
        time.sleep(0.05)
    pytest.fail("it was not swept")


@pytest.mark.parametrize(
    ("pid", "days", "goes"), [(DEAD, 2, True), (DEAD, 0.5, False), (os.getpid(), 2, False), ("x", 2, False)]
)
def test_a_folder_without_a_lock_is_swept_late(shared: Path, pid: object, days: float, goes: bool) -> None:
    folder = make(shared, f"penstock-{pid}-abc", days=days)
    temporary.sweep()
    assert folder.exists() != goes
