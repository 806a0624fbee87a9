"""The constraints of a contract as CHECKs of Delta. The commit that creates a table enforces them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dbt_common.contracts.constraints import ColumnLevelConstraint, ConstraintType, ModelLevelConstraint
from dbt_common.exceptions import DbtRuntimeError

from penstock.delta.table import Column
from penstock.sql.quoting import quote

_ENFORCED = (ConstraintType.check, ConstraintType.not_null)


_SYNONYMS = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
}
_WORD = re.compile(r"[a-z_]+")
_SIZED_TEXT = re.compile(r"\b(?:var)?char\(\d+\)")


def certainly_fits(model: Mapping[str, Any], columns: Iterable[Column]) -> bool:
    """Whether these columns are those of a contract, compared as text. False means that only Spark can tell."""
    wanted = {column["name"]: _type(column.get("data_type") or "") for column in (model.get("columns") or {}).values()}
    return wanted == {column.name: _type(column.type) for column in columns}


def checks(model: Mapping[str, Any]) -> dict[str, str]:
    """The CHECK expressions of a model and its columns, by name."""
    found: dict[str, str] = {}
    for column, constraint in _of_columns(model):
        if constraint.type == ConstraintType.not_null:
            name = constraint.name or f"{column['name']}_not_null"
            found[_clean(name)] = f"{_column(column)} is not null"
        elif constraint.type in (ConstraintType.check, ConstraintType.custom) and constraint.expression:
            found[_clean(constraint.name or _named(column["name"], constraint.expression))] = constraint.expression
    for constraint in _of_model(model):
        if constraint.type == ConstraintType.check and constraint.expression:
            found[_clean(constraint.name or _named(model["name"], constraint.expression))] = constraint.expression
        elif constraint.type == ConstraintType.not_null:
            for name in constraint.columns:
                found[_clean(f"{name}_not_null")] = f"{quote(name)} is not null"
    return found


def unsupported(model: Mapping[str, Any]) -> Iterator[ColumnLevelConstraint]:
    """The constraints that Delta does not enforce; dbt warns of them."""
    for _, constraint in _of_columns(model):
        if constraint.type not in (*_ENFORCED, ConstraintType.custom):
            yield constraint
    for constraint in _of_model(model):
        if constraint.type not in (*_ENFORCED, ConstraintType.custom):
            yield constraint


def _of_columns(model: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], ColumnLevelConstraint]]:
    for column in (model.get("columns") or {}).values():
        for raw in column.get("constraints") or ():
            yield column, _parsed(ColumnLevelConstraint, raw)


def _of_model(model: Mapping[str, Any]) -> Iterator[ModelLevelConstraint]:
    for raw in model.get("constraints") or ():
        yield _parsed(ModelLevelConstraint, raw)


def _parsed(kind: Any, raw: Any) -> Any:
    try:
        return raw if isinstance(raw, kind) else kind.from_dict(raw)
    except (ValueError, KeyError, TypeError) as error:
        raise DbtRuntimeError(
            f"Cannot read the constraint {raw}: {error}. Write it as dbt does: `type: not_null`, or `type: check` with an "
            "`expression`."
        ) from error


def _type(text: str) -> str:
    plain = _WORD.sub(lambda word: _SYNONYMS.get(word.group(), word.group()), "".join(text.lower().split()))
    return _SIZED_TEXT.sub("string", plain)


def _column(column: Mapping[str, Any]) -> str:
    return quote(column["name"])


def _named(what: str, expression: str) -> str:
    return f"{what}_{hashlib.sha256(expression.encode()).hexdigest()[:8]}"


def _clean(name: str) -> str:
    return re.sub(r"\W", "_", name)
