"""The SELECT of a model that follows changes, with the views and CTEs between it and its tables written out.

Views and CTEs become subqueries in the user's own words. Each read of a table becomes a numbered placeholder. `bind`
replaces the placeholders by relations, so the same query can read its tables at different versions, or their changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from penstock.changes.clauses import closing
from penstock.errors import NotFound, PenstockError
from penstock.lake.relations import digest
from penstock.lake.reserved import SYSTEM_TABLE
from penstock.sql import tokens as sql
from penstock.sql.names import Name
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.lake.folder import LakeFolder

PLACEHOLDER = "penstock_place_"
"""Begins the name of a table read. It is part of the digests in plans on disk, so it never changes."""
_PLACEHOLDERS = re.compile(rf"\b{PLACEHOLDER}(\d+)\b")


@dataclass(frozen=True)
class TableRead:
    """One read of a table of the lake in a model's SQL. A table that is read twice has two."""

    name: Name
    location: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ChangeQuery:
    """A SELECT over table reads."""

    text: str
    reads: tuple[TableRead, ...]
    reads_files: bool = False
    """Whether it also reads raw files, or a table at a version that its SQL names."""

    @classmethod
    def read(cls, lake: LakeFolder, text: str, target: Name) -> ChangeQuery:
        """The query of a model's SQL; an error if its changes cannot be followed. No JVM starts."""
        expansion = _Expansion(lake, target)
        expanded = expansion.expand(text.strip().rstrip(";"), (), str(target))
        # The reads of a CTE's own text are not used, only those of its copies.
        used = [int(number) for number in _PLACEHOLDERS.findall(expanded)]
        renumbered = _PLACEHOLDERS.sub(lambda found: f"{PLACEHOLDER}{used.index(int(found.group(1)))}", expanded)
        tables = parse(renumbered, str(target)).find_all(exp.Table)
        others = any(
            isinstance(table.this, exp.Identifier) and not table.name.startswith(PLACEHOLDER) for table in tables
        )
        return cls(renumbered, tuple(expansion.reads[number] for number in used), others)

    def bind(self, relations: Sequence[str]) -> str:
        """The SQL over these relations, one for each table read."""
        return _PLACEHOLDERS.sub(lambda found: relations[int(found.group(1))], self.text)

    def with_text(self, text: str) -> ChangeQuery:
        """Another text over the same table reads."""
        return replace(self, text=text)

    @property
    def digest(self) -> str:
        """A digest of the words and the tables; white space and comments do not count."""
        names = [str(table.name) for table in self.reads]
        return digest([token.text for token in sql.tokens(self.text)], names)


def parse(text: str, where: str) -> exp.Expr:
    """The syntax tree of a query; an error if sqlglot cannot read it."""
    if any(token.text == "|>" for token in sql.tokens(text)) or text.split(None, 1)[:1] in (["from"], ["FROM"]):
        raise PenstockError(
            "The changes of a query that begins with FROM or has pipes (|>) cannot be followed",
            where=where,
            fix="Write it as SELECT … FROM …",
        )
    try:
        return parse_one(text, read="spark")
    except SqlglotError as error:
        reason = re.sub(r"\x1b\[\d*m", "", str(error)).strip().splitlines()[0]
        raise PenstockError(
            f"Cannot parse this SQL, so its changes cannot be followed: {reason}",
            where=where,
            fix="Write this part another way, move it into a table upstream, or use `incremental_strategy: merge`.",
        ) from error


@dataclass(frozen=True)
class _Text:
    """A query's text, with its tokens and the tables that it names."""

    text: str
    tokens: list[Token]
    tables: dict[int, exp.Table]
    """Each table that it names, by the position of the name."""
    within: tuple[Name, ...]
    """The views that this text is a part of."""
    where: str
    twins: dict[tuple[str, str], str]
    """Aliases for tables whose name occurs in two schemas, by schema and name."""
    columns: dict[int, str]
    """The alias to put before a column `table.name` of such a table, by the position of the column."""

    @property
    def qualifiers(self) -> set[tuple[str, str]]:
        """The schema and name of each table that is named with its schema."""
        return {(table.db.lower(), table.name.lower()) for table in self.tables.values() if table.db}


def _schema_and_name(table: exp.Table) -> tuple[str, str]:
    return table.db.lower(), table.name.lower()


def _twins(tables: Iterable[exp.Table]) -> dict[tuple[str, str], str]:
    """An alias for each table that has none, and whose name the text uses for a table of another schema too."""
    plain = {_schema_and_name(table) for table in tables if table.db and not table.alias}
    names = Counter(name for _, name in plain)
    return {(schema, name): f"penstock_{schema}_{name}" for schema, name in plain if names[name] > 1}


def _read_by(select: exp.Expr) -> list[exp.Expr]:
    """The relations in the FROM and the JOINs of a SELECT."""
    source = select.args.get("from_")
    return [*([source.this] if source is not None else []), *(join.this for join in select.args.get("joins") or [])]


class _Expansion:
    """Writes out the views and CTEs of one model, and collects its table reads."""

    def __init__(self, lake: LakeFolder, target: Name) -> None:
        self._lake = lake
        self._target = target
        self.reads: list[TableRead] = []

    def expand(self, text: str, within: tuple[Name, ...], where: str) -> str:
        tree = parse(text, where)
        if not isinstance(tree, exp.Query):
            raise PenstockError(
                "A model that follows changes is one SELECT", where=where, fix="Leave the writing to penstock."
            )
        tables = {
            table.parts[0].meta["start"]: table
            for table in tree.find_all(exp.Table)
            if all(isinstance(part, exp.Identifier) and "start" in part.meta for part in table.parts)
            # A read at a version that the SQL names stays as it is.
            and not table.args.get("version")
            and not table.args.get("when")
        }
        found = sql.tokens(text)
        twins = _twins(tables.values())
        columns = {} if not twins else self._columns_of(tree, twins)
        return self._query(_Text(text, found, tables, within, where, twins, columns), 0, len(found), {})

    def _columns_of(self, tree: exp.Query, twins: dict[tuple[str, str], str]) -> dict[int, str]:
        """The alias of each column `table.name` whose table name occurs in two schemas."""
        aliases: dict[int, str] = {}
        for column in tree.find_all(exp.Column):
            if len(column.parts) != 2 or "start" not in column.parts[0].meta:
                continue
            select = column.parent_select
            while select is not None:
                named = [part for part in _read_by(select) if part.alias_or_name.lower() == column.table.lower()]
                found = [
                    part
                    for part in named
                    if isinstance(part, exp.Table) and not part.alias and _schema_and_name(part) in twins
                ]
                having = found if len(found) == 1 else [part for part in found if self._has(part, column.name)]
                if len(named) == len(found) and len(having) == 1:
                    aliases[column.parts[0].meta["start"]] = twins[_schema_and_name(having[0])]
                if named:
                    break
                select = select.parent_select
        return aliases

    def _has(self, table: exp.Table, column: str) -> bool:
        """Whether the lake has this table with this column."""
        try:
            columns = self._lake.columns(Name(table.db, table.name))
        except PenstockError:
            return False
        return column.lower() in {found.name.lower() for found in columns}

    def _query(self, source: _Text, index: int, end: int, scope: dict[str, str]) -> str:
        """The text of the query between two tokens, with its WITH written out."""
        found, text = source.tokens, source.text
        if found[index].token_type == TokenType.WITH:
            index, scope = self._ctes(source, index + 1, end, scope)
        parts, at = [], found[index].start
        while index < end:
            token = found[index]
            last = index
            replacement = None
            if token.start in source.tables:
                table = source.tables[token.start]
                last = index + 2 * (len(table.parts) - 1)
                replacement = self._relation(source, table, scope)
            elif token.token_type == TokenType.L_PAREN and found[index + 1].token_type == TokenType.WITH:
                last = closing(found, index)
                replacement = f"({self._query(source, index + 1, last, scope)}\n)"
            elif self._is_qualified_column(source, index, end):
                last = index + 2
                pair = (token.text.lower(), found[last].text.lower())
                replacement = quote(source.twins.get(pair, found[last].text))
            elif token.start in source.columns:
                replacement = quote(source.columns[token.start])
            if replacement is not None:
                parts += [text[at : token.start], replacement]
                at = found[last].end + 1
            index = last + 1
        return "".join([*parts, text[at : found[end - 1].end + 1]])

    def _ctes(self, source: _Text, index: int, end: int, scope: dict[str, str]) -> tuple[int, dict[str, str]]:
        """The token at which the query after WITH begins, and the text of each name in scope."""
        found = source.tokens
        if found[index].text.upper() == "RECURSIVE":
            raise PenstockError(
                "The changes of a recursive CTE cannot be followed",
                where=source.where,
                fix="Build it as a `table`, and read the table.",
            )
        while index < end:
            name, columns = found[index].text, ""
            index += 1
            if found[index].token_type == TokenType.L_PAREN:
                end_of = closing(found, index)
                columns = source.text[found[index].start : found[end_of].end + 1]
                index = end_of + 1
            index += 1  # AS
            end_of = closing(found, index)
            body = f"(\n{self._query(source, index + 1, end_of, scope)}\n)"
            if columns:
                body = f"(select * from {body} as {quote(name)}{columns})"
            scope = {**scope, name.lower(): body}
            index = end_of + 1
            if found[index].token_type != TokenType.COMMA:
                break
            index += 1
        return index, scope

    def _relation(self, source: _Text, table: exp.Table, scope: dict[str, str]) -> str:
        name = ".".join(part.name for part in table.parts)
        if len(table.parts) == 1 and name.lower() in scope:
            # A CTE that is read twice becomes two subqueries, each with table reads of its own.
            return self._aliased(self._again(scope[name.lower()]), table, {})
        if len(table.parts) == 1 or table.db.lower() == "delta":
            raise PenstockError(
                f"The model reads {name}, which is not a relation of the lake",
                where=source.where,
                fix="Use ref() or source(). A table outside of the lake is a source with a `location`.",
            )
        wanted = Name.parse(".".join(quote(part.name) for part in table.parts))
        if wanted == self._target:
            raise PenstockError(
                f"The model reads itself, {wanted}", where=source.where, fix="Read the tables that it is built from."
            )
        if wanted in source.within:
            raise PenstockError(
                f"The view {wanted} reads itself", where=source.where, fix="Create it from other relations."
            )
        relation = self._lake.find(wanted)
        if relation is None:
            raise NotFound(
                f"The model reads {wanted}, which does not exist",
                where=source.where,
                fix="Build it first, or correct its name in the SQL.",
            )
        if relation.kind == SYSTEM_TABLE:
            raise PenstockError(
                f"The model reads {wanted}, one of the lake's own tables, whose changes can't be followed",
                where=source.where,
                fix="Use another `incremental_strategy`, or a `table`.",
            )
        if relation.kind == "view":
            query = self._lake.view(relation).sql
            inner = self.expand(query.strip().rstrip(";"), (*source.within, wanted), f"the view {wanted}")
            return self._aliased(f"(\n{inner}\n)", table, source.twins)
        if relation.kind == "files":
            return self._aliased(wanted.sql, table, source.twins)
        columns = tuple(column.name.lower() for column in self._lake.columns(wanted))
        return self._aliased(self._read(TableRead(wanted, relation.location, columns)), table, source.twins)

    def _aliased(self, text: str, table: exp.Table, twins: Mapping[tuple[str, str], str]) -> str:
        if table.alias:
            return text
        return f"{text} as {quote(twins.get(_schema_and_name(table), table.name))}"

    def _again(self, body: str) -> str:
        """A copy of a CTE's text, with table reads of its own."""
        return _PLACEHOLDERS.sub(lambda found: self._read(self.reads[int(found.group(1))]), body)

    def _read(self, table: TableRead) -> str:
        self.reads.append(table)
        return f"{PLACEHOLDER}{len(self.reads) - 1}"

    @staticmethod
    def _is_qualified_column(source: _Text, index: int, end: int) -> bool:
        """Whether `schema.table.` begins here. The alias keeps only the table's name, so the schema has to go."""
        found = source.tokens
        if index + 3 >= end or (index and found[index - 1].token_type == TokenType.DOT):
            return False
        dots = (found[index + 1].token_type, found[index + 3].token_type) == (TokenType.DOT, TokenType.DOT)
        return dots and (found[index].text.lower(), found[index + 2].text.lower()) in source.qualifiers
