from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.startup import memory

GIB = 1024**3


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "_physical", lambda: 16 * GIB)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "groups").mkdir()
    return tmp_path


def budget(machine: Path) -> int:
    return memory.budget(machine / "proc", machine / "groups")


def limit(machine: Path, path: str, text: str) -> None:
    file = machine / "groups" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_without_groups_it_is_the_machine(machine: Path) -> None:
    assert budget(machine) == 16 * GIB


def test_v2_takes_the_least_on_the_way_up(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("0::/user/job\n")
    limit(machine, "user/job/memory.max", "max\n")
    limit(machine, "user/memory.max", f"{3 * GIB}\n")
    assert budget(machine) == 3 * GIB
    limit(machine, "user/job/memory.max", f"{2 * GIB}\n")
    assert budget(machine) == 2 * GIB


def test_v2_inside_a_container_reads_the_base(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("0::/\n")
    limit(machine, "memory.max", str(GIB))
    assert budget(machine) == GIB


def test_v1_has_its_own_file_and_no_limit_is_a_huge_number(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("5:cpu,cpuacct:/x\n4:memory:/docker/abc\n")
    limit(machine, "memory/docker/abc/memory.limit_in_bytes", "9223372036854771712")
    assert budget(machine) == 16 * GIB
    limit(machine, "memory/docker/abc/memory.limit_in_bytes", str(4 * GIB))
    assert budget(machine) == 4 * GIB


def test_the_driver_gets_half_and_never_too_little() -> None:
    assert memory.driver_memory(8 * GIB) == "4096m"
    assert memory.driver_memory(GIB // 4) == "512m"
