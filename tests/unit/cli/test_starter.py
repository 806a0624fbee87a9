from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dbt.adapters.penstock.cli.command import penstock
from tests.unit.cli.conftest import SCHEMAS, check


def run(*arguments: str | Path, exits: int = 0) -> Result:
    result = CliRunner().invoke(penstock, list(map(str, arguments)))
    assert result.exit_code == exits, (result.output, result.exception)
    return result


def asked(*arguments: str | Path) -> dict[str, Any]:
    document = dict(json.loads(run(*arguments, "--json").stdout))
    check(document, json.loads((SCHEMAS / f"{document['command']}.json").read_text()), "$")
    return document


@pytest.mark.parametrize("command", [["init"], ["demo", "--no-build"]])
def test_nothing_is_written_over(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    result = run(*command, tmp_path, exits=1)
    assert "nothing is written over" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_project_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "My shop-2"
    assert len(asked("init", folder)["files"]) == 4
    monkeypatch.chdir(folder)
    assert "name: my_shop_2\n" in Path("dbt_project.yml").read_text()
    assert "0 of 0 models have work, 0 with errors" in run("plan").output


def test_the_demo_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "demo"
    document = asked("demo", folder, "--no-build")
    assert not document["built"]
    monkeypatch.chdir(folder)
    found = {one["model"]: one for one in json.loads(run("plan", "--json").stdout)["models"]}
    assert found["bronze_orders"]["files"]["files"] == 4
    assert found["bronze_orders"]["files"]["batches"] == 2
    assert found["bronze_orders"]["relation"] == "demo_bronze.orders"
    assert [one["error"] for one in found.values()] == [None, None, None]


def test_the_demo_has_the_same_data_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("demo", tmp_path / name, "--no-build")
    texts = [(tmp_path / name / "landing/orders/2026-04-02.json").read_text() for name in ("a", "b")]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 25


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    assert "_PENSTOCK_COMPLETE" in asked("completion", shell)["script"]


def test_commands_are_completed() -> None:
    environment = {"_PENSTOCK_COMPLETE": "bash_complete", "COMP_WORDS": "penstock st", "COMP_CWORD": "1"}
    result = CliRunner().invoke(penstock, [], prog_name="penstock", env=environment)
    assert "plain,status" in result.output
