from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dbt.adapters.penstock.cli.command import penstock
from tests.unit.inspection.conftest import History, follower

__all__ = ["follower"]

SCHEMAS = Path(__file__).parent / "schemas"
Penstock = Callable[..., Result]


@pytest.fixture
def shop(tmp_path: Path) -> History:
    return History(tmp_path)


@pytest.fixture
def run(shop: History) -> Penstock:
    """`penstock --root <the lake>` with these arguments; exit code 0 unless another one is expected."""

    def run(*arguments: str | Path, exits: int = 0) -> Result:
        result = CliRunner().invoke(penstock, ["--root", shop.lake.root, *map(str, arguments)])
        assert result.exit_code == exits, result.output
        return result

    return run


@pytest.fixture
def ask(run: Penstock) -> Callable[..., dict[str, Any]]:
    """The JSON document of a command; it fits the schema of its name."""

    def ask(*arguments: str | Path, exits: int = 0) -> dict[str, Any]:
        document = json.loads(run(*arguments, "--json", exits=exits).stdout)
        check(document, json.loads((SCHEMAS / f"{document['command'].replace(' ', '_')}.json").read_text()), "$")
        return dict(document)

    return ask


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def check(value: Any, schema: Any, at: str) -> None:
    """The value fits a JSON schema of these words: type, enum, const, properties (all of them, no others), items."""
    if "const" in schema:
        assert value == schema["const"], at
    if "enum" in schema:
        assert value in schema["enum"], (at, value)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, _TYPES[name]) for name in types), (at, value)
        assert not (isinstance(value, bool) and "boolean" not in types), at
    if isinstance(value, dict) and "properties" in schema:
        assert list(value) == list(schema["properties"]), at
        for key, inner in schema["properties"].items():
            check(value[key], inner, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            check(item, schema["items"], f"{at}[{index}]")
