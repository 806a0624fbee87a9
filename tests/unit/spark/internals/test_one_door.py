"""Private parts of Spark, Delta and PySpark are used in `spark/internals` and `spark/startup` alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import penstock
from penstock.spark.internals.jvm import DELTA
from penstock.spark.internals.signatures import EXPECTED

SOURCE = Path(penstock.__file__).parents[1]
PRIVATE = {
    "_jdf", "_jvm", "_jsparkSession", "_jsc", "_jreader", "_jwrite", "_jcols", "_gateway", "_active_spark_context",
    "_instantiatedSession", "_accumulatorServer", "java_class", "scala_object", "INPUT_CONVERTER",
}  # fmt: skip
DOORS = ("penstock/spark/internals/", "penstock/spark/startup/")
PUBLIC = re.compile(
    r"java\.|scala\.|org\.apache\.hadoop\.|io\.delta\.package$|penstock\.|"
    r"org\.apache\.spark\.sql\.(SaveMode|functions|Encoders)$"
)
"""Classes whose methods do not change from version to version."""


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
    assert {path: names for path, names in found.items() if not path.startswith(DOORS)} == {}


def class_names(text: str) -> set[str]:
    """The Java classes and Scala objects that a module of `spark/internals` looks up."""
    tree = ast.parse(text)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    } | {"DELTA": DELTA}
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in ("java_class", "scala_object", "_delta") or (called == "_delta" and len(node.args) != 1):
            continue
        name = _constant(node.args[-1], constants)
        if name:
            found.add((f"{DELTA}." if called == "_delta" else "") + name + ("$" if called == "scala_object" else ""))
    return found


def _constant(node: ast.expr, constants: dict[str, object]) -> str:
    """The text of a literal, a name of a constant, or an f-string of both; empty if it is none of these."""
    if isinstance(node, ast.JoinedStr):
        parts = [
            _constant(getattr(item, "value", item), constants)
            if isinstance(item, ast.FormattedValue)
            else str(getattr(item, "value", ""))
            for item in node.values
        ]
        return "".join(parts) if all(parts) else ""
    if isinstance(node, ast.Name):
        return str(constants.get(node.id, ""))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_private_class_is_compared_at_the_start() -> None:
    modules = (SOURCE / "penstock" / "spark" / "internals").glob("*.py")
    used = {name for path in modules for name in class_names(path.read_text()) if not PUBLIC.match(name)}
    compared = {name.removesuffix("$") for name in EXPECTED}
    assert len(used) > 15
    assert {name for name in used if name.removesuffix("$") not in compared} == set()


def test_internals_import_nothing_above_them() -> None:
    """No cycle: the engine below `spark`, other internals, and the settings of a commit."""
    for path in (SOURCE / "penstock" / "spark" / "internals").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock.spark"):
                assert node.module in ("penstock.spark.commit_settings", "penstock.spark.query_columns") or (
                    node.module or ""
                ).startswith("penstock.spark.internals"), f"{path.name} imports {node.module}"
