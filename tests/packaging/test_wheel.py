"""What a user gets: the wheel alone, in an empty environment, builds a model in a folder far from this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("PENSTOCK_CACHE") or Path.home() / ".cache" / "penstock")
UV = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".tools" / "bin" / "uv")

PROJECT = {
    "dbt_project.yml": "{name: shop, profile: shop}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: penstock, root: ./lake, schema: main}}}",
    "models/numbers.sql": "{{ config(materialized='table') }} select id from range(3)",
}
ROWS = "import penstock; print(penstock.connect('lake').log_of('main.numbers').statistics().rows)"

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a program in an empty folder, without what this process's environment says of Python, uv and dbt."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "DBT_")) and key not in ("VIRTUAL_ENV", "UV_LINK_MODE", "UV_PYTHON")
    }

    # Not the user's: for this environment it would get a class archive of 180 MB that nothing reads again.
    cache = tmp_path / "cache"
    if (CACHE / "jars").is_dir():
        shutil.copytree(CACHE / "jars", cache / "jars")
    cache.mkdir(exist_ok=True)
    cache.chmod(0o700)
    inherited |= {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PENSTOCK_CACHE": str(cache)}

    def run(*command: str | Path, cwd: Path = folder, **variables: str) -> str:
        done = subprocess.run(command, cwd=cwd, env=inherited | variables, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    yield run
    shutil.rmtree(cache)


@pytest.fixture
def installed(run: Run, tmp_path: Path) -> Iterator[Path]:
    """The programs of an environment with the wheel and, of the locked packages, those that it declares."""
    # uv builds the wheel from the source distribution, so this is a test of both.
    run(UV, "build", "--out-dir", str(tmp_path / "dist"), cwd=ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    environment = tmp_path / "environment"
    # Not `pip install` of the wheel under constraints: uv would build pyspark anew, half a minute, at each run.
    run(
        *(UV, "sync", "--frozen", "--no-dev", "--no-install-project", "--python", sys.executable),
        cwd=ROOT,
        UV_PROJECT_ENVIRONMENT=str(environment),
    )
    python = environment / "bin" / "python"
    run(UV, "pip", "install", "--no-deps", "--python", python, wheel)
    run(UV, "pip", "check", "--python", python)
    yield python.parent
    shutil.rmtree(environment)


def test_the_wheel_builds_a_model(run: Run, installed: Path, tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        file = tmp_path / "elsewhere" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    run(installed / "dbt", "run")
    assert run(installed / "python", "-c", ROWS).strip() == "3"
    assert run(installed / "python", "-c", "import penstock; print(penstock.__file__)").startswith(str(tmp_path))
