"""Relations, and the two small files that describe relations without a Delta log: `_view.json` and `_link.json`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.sql.names import Name

FORMAT = 1
VIEW_FILE = "_view.json"
LINK_FILE = "_link.json"
LEDGER_FOLDER = "_checkpoint"

Kind = Literal["table", "view", "files", "system table"]


@dataclass(frozen=True)
class Relation:
    """A table, a view, raw files that are read as a table, or one of the lake's own tables."""

    name: Name
    kind: Kind
    location: str
    stamp: str = field(default="", compare=False)
    """When the stamp changes, the name must be registered in Spark again."""
    link: Link | None = None
    """Set if the data is outside the relation's own folder."""

    def __str__(self) -> str:
        return str(self.name)


@dataclass(frozen=True)
class Link:
    """The location of a relation whose data is outside its own folder."""

    location: str
    format: str = "delta"
    options: dict[str, str] = field(default_factory=dict, hash=False)

    def to_bytes(self) -> bytes:
        return _dump({"location": self.location, "format": self.format, "options": self.options})

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Link:
        content = _load(data, where, ("location", "format"))
        location, format, options = content["location"], content["format"], content.get("options") or {}
        if not _is_text(location) or not isinstance(format, str) or not _are_texts(options):
            raise _not_ours(where)
        return cls(location, format, options)


@dataclass(frozen=True)
class View:
    """A stored view: its SQL, and its columns and inputs when it was created."""

    sql: str
    columns: tuple[Column, ...]
    description: str | None = None
    inputs: dict[str, str] = field(default_factory=dict, hash=False)
    """The relations that the view reads, each with a digest of its columns. If these are unchanged, so is the view."""

    def to_bytes(self) -> bytes:
        return _dump(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> View:
        content = _load(data, where, ("sql", "columns"))
        description, inputs = content.get("description"), content.get("inputs") or {}
        try:
            columns = tuple(Column(**column) for column in content["columns"])
            for name in inputs:
                Name.parse(name)
        except (TypeError, PenstockError) as error:
            raise _not_ours(where) from error
        texts = [text for column in columns for text in (column.name, column.type)]
        optional = [text for text in (description, *(column.comment for column in columns)) if text is not None]
        if not _is_text(content["sql"]) or not _are_texts(inputs) or not all(map(_is_text, texts + optional)):
            raise _not_ours(where)
        return cls(sql=content["sql"], columns=columns, description=description, inputs=inputs)


def digest(*parts: Any) -> str:
    """A short hash of some values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=asdict).encode()).hexdigest()[:16]


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps({"format_version": FORMAT, **content}, indent=2, ensure_ascii=False).encode()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(values: Any) -> bool:
    return isinstance(values, dict) and all(isinstance(text, str) for pair in values.items() for text in pair)


def _not_ours(where: str) -> PenstockError:
    return PenstockError(
        "This file was changed, or was not written by penstock",
        where=where,
        fix="Move the file away, and run its model again.",
    )


def _load(data: bytes, where: str, required: tuple[str, ...]) -> dict[str, Any]:
    try:
        content = json.loads(data)
        number = content["format_version"]
        missing = [key for key in required if key not in content]
    except (ValueError, KeyError, TypeError) as error:
        raise _not_ours(where) from error
    if number != FORMAT:
        raise PenstockError(
            f"This file has format {number}, but this version of penstock reads only format {FORMAT}",
            where=where,
            fix="Upgrade dbt-penstock.",
        )
    if missing:
        raise PenstockError(f"This file has no {', '.join(missing)}", where=where, fix="Run its model again.")
    return dict(content)
