"""Private parts of Spark, Delta and PySpark are used in `spark/internals` and `spark/startup` alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parents[1]
PRIVATE = {
    "_jdf", "_jvm", "_jsparkSession", "_jsc", "_jreader", "_jwrite", "_jcols", "_gateway", "_active_spark_context",
    "_instantiatedSession", "_accumulatorServer", "java_class", "scala_object", "INPUT_CONVERTER",
}  # fmt: skip
DOORS = ("penstock/spark/internals/", "penstock/spark/startup/")
MOVING = {"penstock/changes/incremental/weights.py", "penstock/files/reading/frame.py"}
"""Modules whose private calls are on their way to `spark/internals`."""


def private_names(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # getattr(frame, "_jdf")
    return found & PRIVATE


@pytest.mark.parametrize(
    "text",
    ["frame._jdf", "getattr(frame, '_jdf')", "from x import java_class", "java_class(spark, 'a')"],
)
def test_private_names_are_found(text: str) -> None:
    assert private_names(text)


def test_no_other_module_uses_private_names() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): names
        for path in SOURCE.rglob("*.py")
        if (names := private_names(path.read_text()))
    }
    assert {path: names for path, names in found.items() if not path.startswith(DOORS) and path not in MOVING} == {}


def test_internals_import_nothing_above_them() -> None:
    """No cycle: the engine below `spark`, other internals, and the settings of a commit."""
    for path in (SOURCE / "penstock" / "spark" / "internals").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock.spark"):
                assert node.module in ("penstock.spark.commit_settings", "penstock.spark.query_columns") or (
                    node.module or ""
                ).startswith("penstock.spark.internals"), f"{path.name} imports {node.module}"
