from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dbt.adapters.penstock.cli.command import COMMANDS, penstock
from tests.unit.cli.conftest import Penstock
from tests.unit.inspection.conftest import History


def test_every_command_has_help_and_json(run: Penstock) -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(penstock, [name, "--help"])
        assert shown.exit_code == 0, shown.output
        if name not in ("files", "demo", "init"):
            assert "--json" in shown.output, name


def test_an_error_is_one_line(run: Penstock) -> None:
    result = run("files", "bronze.nothing", exits=1)
    assert result.stderr.startswith("Error: There is no relation bronze.nothing")
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_an_error_of_the_program_is_one_line_too(run: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("password=hunter2hunter2\nsecond line")

    monkeypatch.setattr("penstock.inspection.relations_status.relations_status", fail)
    result = run("status", exits=1)
    assert result.stderr.startswith("Error: ZeroDivisionError: ")
    assert len(result.stderr.splitlines()) == 1


def test_debug_shows_the_traceback(shop: History) -> None:
    result = CliRunner().invoke(penstock, ["--debug", "--root", shop.lake.root, "files", "bronze.nothing"])
    assert result.exception is not None
    assert type(result.exception).__name__ == "NotFound"


@pytest.mark.parametrize(
    "arguments",
    [["--root", "x", "--target", "prod", "status"], ["nonsense"], ["--root", "x", "files", "a.b", "--since", "x"]],
)
def test_a_wrong_command_exits_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(penstock, arguments).exit_code == 2


def test_the_lake_may_be_named_after_the_command(shop: History) -> None:
    after = CliRunner().invoke(penstock, ["status", "--json", "--root", shop.lake.root])
    before = CliRunner().invoke(penstock, ["--root", shop.lake.root, "status", "--json"])
    assert (after.exit_code, after.stdout) == (before.exit_code, before.stdout)
    assert CliRunner().invoke(penstock, ["files", "show", "a.b", "--root", shop.lake.root]).exit_code == 1
    both = CliRunner().invoke(penstock, ["--target", "prod", "status", "--root", shop.lake.root])
    assert both.exit_code == 2
    assert "leave out the other options" in both.stderr


def test_no_project_and_no_root_exits_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(penstock, ["status"])
    assert result.exit_code == 2
    assert "There is no dbt project in" in result.stderr


def _project(folder: Path, type: str = "penstock") -> None:
    (folder / "dbt_project.yml").write_text("name: p\nversion: '1'\nprofile: p\n")
    output = f"type: {type}\n      root: \"{{{{ env_var('LAKE_OF_TEST') }}}}\"\n      schema: s"
    (folder / "profiles.yml").write_text(f"p:\n  target: dev\n  outputs:\n    dev:\n      {output}\n")


def test_the_profile_of_the_current_folder(shop: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.land()
    shop.run()
    _project(tmp_path)
    monkeypatch.setenv("LAKE_OF_TEST", "lake")  # relative roots begin at the project
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(penstock, ["status"])
    assert result.exit_code == 0, result.output
    assert "bronze.events" in result.stdout


def test_a_wrong_profile_exits_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _project(tmp_path)
    monkeypatch.delenv("LAKE_OF_TEST", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(penstock, ["status"])
    assert result.exit_code == 2
    assert "LAKE_OF_TEST" in result.stderr


def test_with_a_root_nothing_of_dbt_is_imported(shop: History) -> None:
    shop.land()
    shop.run()
    code = (
        "import sys\n"
        "sys.argv = ['penstock', '--root', sys.argv[1], 'status']\n"
        "from dbt.adapters.penstock.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = ('dbt.adapters.base', 'dbt.cli', 'dbt.config', 'dbt_common', 'pyspark', 'py4j', 'pandas')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, shop.lake.root], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_colours_are_for_terminals_only(run: Penstock, shop: History) -> None:
    shop.land()
    shop.run()
    assert "\x1b" not in run("status").output


def test_the_command_is_installed() -> None:
    script = Path(sys.executable).with_name("penstock")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.startswith("penstock, version ")
