"""Every base class of dbt-tests-adapter runs here, or stands in this one table with its reason."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dbt.tests.adapter

_GRANTS = "a lake has no grants: its storage's permissions rule"
_FUNCTIONS = "a lake keeps tables and views; functions would live in a catalog"
_MATERIALIZED_VIEWS = "Delta has no materialized views; an incremental model is what takes their place"

LEFT_OUT = {
    "empty.test_empty.BaseTestEmptySeedFlag": "`dbt seed --empty` comes with dbt-core 1.12",
    "functions.test_js_udfs": _FUNCTIONS,
    "functions.test_udafs": _FUNCTIONS,
    "functions.test_udfs": _FUNCTIONS,
    "grants.test_incremental_grants": _GRANTS,
    "grants.test_invalid_grants": _GRANTS,
    "grants.test_model_grants": _GRANTS,
    "grants.test_seed_grants": _GRANTS,
    "grants.test_snapshot_grants": _GRANTS,
    "materialized_view.basic": _MATERIALIZED_VIEWS,
    "materialized_view.changes": _MATERIALIZED_VIEWS,
    "utils.test_current_timestamp.BaseCurrentTimestampAware": "PySpark's timestamps are naive: the other of the two runs",
    "utils.test_escape_single_quotes.BaseEscapeSingleQuotesQuote": "Spark escapes by backslash: the other of the two runs",
}

_PREFIX = "dbt.tests.adapter."


def _modules(package: str, folders: list[str]) -> Iterator[ModuleType]:
    for folder in folders:
        for file in sorted(Path(folder).rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            if parts[-1] != "__init__":
                yield importlib.import_module(".".join([package, *parts]))


def _bases() -> dict[str, type]:
    """The classes that have tests and are there to be subclassed."""
    return {
        f"{cls.__module__.removeprefix(_PREFIX)}.{name}": cls
        for module in _modules("dbt.tests.adapter", list(dbt.tests.adapter.__path__))
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
        and not name.startswith("Test")
        and any(attribute.startswith("test") for attribute in dir(cls))
    }


def _run_here() -> set[type]:
    """Every class above those of this folder that pytest collects."""
    found: set[type] = set()
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"coverage_of_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if name.startswith("Test") and cls.__module__ == module.__name__:
                found |= set(cls.__mro__)
    return found


def _is_left_out(base: str) -> bool:
    return base in LEFT_OUT or base.rpartition(".")[0] in LEFT_OUT


def test_each_base_class_runs_or_is_left_out_with_a_reason() -> None:
    bases, run = _bases(), _run_here()
    assert not [name for name, cls in bases.items() if cls not in run and not _is_left_out(name)]
    assert not [name for name, cls in bases.items() if cls in run and name in LEFT_OUT]
    assert sum(cls in run for cls in bases.values()) >= 177


def test_nothing_is_left_out_in_vain() -> None:
    bases = _bases()
    known = set(bases) | {name.rpartition(".")[0] for name in bases}
    assert not set(LEFT_OUT) - known
