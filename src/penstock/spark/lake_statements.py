"""Statements that the lake runs and Spark does not: Spark would change its in-memory catalog alone."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import PenstockError
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import View
from penstock.sql.creation import text_after, view_text
from penstock.sql.names import Name
from penstock.sql.quoting import quote
from penstock.sql.statement import Statement

CreateView = Callable[[Name, str, str | None], View]
"""Makes a view of this name and query, with a description."""


def run_by_lake(lake: LakeFolder, statement: Statement, create_view: CreateView) -> bool:
    """Run a statement about schemas, views, names or drops; False if the statement is for Spark.

    Spark starts for CREATE VIEW alone, in `create_view`, to check the view's query.
    """
    if statement.temporary:
        return False
    if statement.schema is not None:
        return _schema(lake, statement, statement.schema)
    if statement.target is None:
        return False
    return _relation(lake, statement, statement.target, create_view)


def _schema(lake: LakeFolder, statement: Statement, schema: str) -> bool:
    if statement.verb == "CREATE":
        lake.create_schema(schema)
        return True
    if statement.verb == "DROP":
        lake.drop_schema(schema, cascade="CASCADE" in statement.after)
        return True
    return False


def _relation(lake: LakeFolder, statement: Statement, target: Name, create_view: CreateView) -> bool:
    verb, kind = statement.verb, statement.object
    if verb == "DROP" and kind in ("TABLE", "VIEW"):
        _refuse_other_kind(lake, statement, target)
        lake.drop(target, missing_ok="EXISTS" in statement.before)
    elif verb == "ALTER" and statement.after[:2] == ("RENAME", "TO"):
        lake.rename(target, Name.parse(text_after(statement, "RENAME", "TO")))
    elif verb == "CREATE" and kind == "VIEW":
        _view(lake, statement, target, create_view)
    elif verb == "ALTER" and kind == "VIEW":
        raise PenstockError(
            "ALTER VIEW would be forgotten with this process", where=str(target), fix="Use CREATE OR REPLACE VIEW."
        )
    else:
        return False
    return True


def _view(lake: LakeFolder, statement: Statement, target: Name, create_view: CreateView) -> None:
    if (found := lake.find(target)) is not None:
        if "EXISTS" in statement.before:
            return
        _refuse_other_kind(lake, statement, target)
        if "REPLACE" not in statement.before:
            raise PenstockError(f"There is a {found.kind} {target} already", fix="Use CREATE OR REPLACE VIEW.")
    view = view_text(statement)
    query = view.query
    if view.columns:
        names = ", ".join(map(quote, view.columns))
        query = f"select * from (\n{query}\n) as v({names})"
    create_view(target, query, view.comment)


def _refuse_other_kind(lake: LakeFolder, statement: Statement, target: Name) -> None:
    """Refuse VIEW for a table and TABLE for a view, as Spark does."""
    found = lake.find(target)
    if found is not None and (found.kind == "view") != (statement.object == "VIEW"):
        raise PenstockError(
            f"{target} is a {found.kind}: {statement.verb} {statement.object} does not take it",
            fix=f"Use DROP {'VIEW' if found.kind == 'view' else 'TABLE'} first.",
        )
