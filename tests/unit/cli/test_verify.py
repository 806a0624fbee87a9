"""The face of `penstock verify`; tests/functional/test_verify.py compares with Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dbt.adapters.penstock.cli.command import penstock
from penstock.inspection.verification import Difference, Verification
from tests.unit.cli.conftest import SCHEMAS, check

WRONG = Verification(
    "rows", 12, 1, 1, (Difference("missing", '{"id":7}', 1, 0), Difference("extra", '{"id":8}', 0, 1)), ("a note",)
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert CliRunner().invoke(penstock, ["init", str(tmp_path / "p")]).exit_code == 0
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def run(*arguments: str, exits: int) -> Result:
    result = CliRunner().invoke(penstock, ["verify", *arguments])
    assert result.exit_code == exits, (result.output, result.exception)
    return result


@pytest.mark.parametrize(("found", "exits"), [(WRONG, 1), (Verification("rows", 12, 0, 0, ()), 0)])
def test_a_result(project: Path, monkeypatch: pytest.MonkeyPatch, found: Verification, exits: int) -> None:
    monkeypatch.setattr("dbt.adapters.penstock.cli.project.Project.verify", lambda self, table: (table, found))
    document = json.loads(run("s.t", "--json", exits=exits).stdout)
    check(document, json.loads((SCHEMAS / "verify.json").read_text()), "$")
    shown = run("s.t", exits=exits).output
    assert ("s.t is right: 12 rows, compared by rows" in shown) == (exits == 0)
    assert ("Note: a note" in shown) == (exits == 1)
    assert ('{"id":7}' in shown) == (exits == 1)


def test_what_can_not_be_verified(project: Path) -> None:
    assert "No model of the project makes s.nothing" in run("s.nothing", exits=1).stderr
    assert "record no source versions" in run("main.first", exits=1).stderr
    assert CliRunner().invoke(penstock, ["--root", "lake", "verify", "s.t"]).exit_code == 2
