"""Imports point down only, and importing starts nothing."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ENGINE = Path(penstock.__file__).parent
MODULES = [module.name for module in pkgutil.walk_packages([str(ENGINE)], "penstock.")]


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_the_engine_knows_nothing_of_dbt() -> None:
    for file in ENGINE.rglob("*.py"):
        assert not [name for name in imported(file) if name.split(".")[0] in ("dbt", "dbt_common")], file


@pytest.mark.parametrize("module", ["penstock", "dbt.adapters.penstock"])
def test_importing_brings_no_spark(module: str) -> None:
    code = f"import sys, {module}; print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j', 'pandas', 'pyarrow', 'sqlglot')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
