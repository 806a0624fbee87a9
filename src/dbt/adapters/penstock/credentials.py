"""The profile: the root of the lake, its store and the Spark session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError

from penstock.api import Lake
from penstock.config import store_options
from penstock.config.near import unknown_keys
from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError
from penstock.secrets import credentials_problem, redact, remember
from penstock.storage import normalize

# Spark's name for its one catalog. dbt needs a database, and a lake has none.
DATABASE = "spark_catalog"
# Spark's in-memory catalog accepts only such names.
_SCHEMA = re.compile(r"\w+", re.ASCII)
_KEYS = ("root", "schema", "database", "session", "storage_options")


@dataclass
class PenstockCredentials(Credentials):
    root: str = ""
    schema: str = ""
    database: str = DATABASE
    session: dict[str, Any] = field(default_factory=dict, repr=False)
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def type(self) -> str:
        return "penstock"

    @property
    def unique_field(self) -> str:
        return self.root

    def _connection_keys(self) -> tuple[str, ...]:
        # `dbt debug` and `target` show these keys. `storage_options` and `spark_config` may hold secrets.
        return ("root", "schema", "database", "master", "memory")

    @property
    def master(self) -> str:
        return str(self.session.get("remote") or self.session.get("master") or "local[*]")

    @property
    def memory(self) -> str | None:
        return self.session.get("memory")

    @classmethod
    def validate(cls, data: Any) -> None:
        for block in ("storage_options", "session"):
            if isinstance(data.get(block), Mapping):
                remember(data[block])
        problems = unknown_keys((key for key in data if key != "type"), (*_KEYS, "threads"))
        for key in ("root", "schema"):
            if not isinstance(data.get(key), str) or not data[key].strip():
                problems.append(f"`{key}` is missing" if not data.get(key) else f"`{key}` is a string")
        problems += cls._unusable(data)
        if data.get("database", DATABASE) != DATABASE:
            problems.append("`database` can't be set: a lake has schemas only")
        problems += store_options.problems(data.get("storage_options"))
        session = data.get("session")
        problems += SessionSettings.problems(session)
        if isinstance(session, Mapping) and session.get("remote"):
            problems.append("`session.remote` (Spark Connect) is not supported yet: use `session.master`")
        if problems:
            raise ValidationError(redact("; ".join(problems)))

    @staticmethod
    def _unusable(data: Mapping[str, Any]) -> list[str]:
        """The errors that otherwise the first statement would raise."""
        problems = []
        root, schema = data.get("root"), data.get("schema")
        if isinstance(schema, str) and schema.strip() and not _SCHEMA.fullmatch(schema):
            problems.append(f"`schema` is a name of letters, digits and underscores, not {schema!r}")
        try:
            if isinstance(root, str):
                if problem := credentials_problem(root):
                    problems.append(f"`root` {problem}")
                else:
                    normalize(root)
        except PenstockError as error:
            problems.append(f"`root`: {error}")
        return problems

    def lake(self, base: str | None = None) -> Lake:
        """The lake. A relative root starts at the project's folder."""
        return Lake(
            normalize(self.root, base),
            settings=SessionSettings.from_mapping(self.session),
            storage_options=self.storage_options,
        )
