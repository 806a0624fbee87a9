"""dbt's contract for the engine. Each module holds one part of the adapter; `impl` puts the parts together.

| module | what it holds |
|---|---|
| `credentials` | the profile |
| `connections`, `handle`, `response` | dbt's connections, a thread's handle and cursors, the result of a statement |
| `relation`, `column` | a relation and a column as dbt names them |
| `config`, `constraints` | a model's config and its contract, as the engine takes them |
| `engine` | the base of the parts: the lake, this thread's runner, a table's layout |
| `locations`, `checks` | data outside of the lake's folder; the errors of a config before a model runs |
| `relations`, `columns`, `layout` | schemas, tables and views; columns and their changes; clauses, properties, comments |
| `docs_catalog`, `seed`, `python_model` | `dbt docs` and freshness; seeds; Python models |
| `models` | models that the engine runs by itself: `files`, `windows`, `changes` |
| `cli` | the command `penstock` |
| `log` | dbt's log, without secrets |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt.adapters.base import AdapterPlugin

    Plugin: AdapterPlugin


def __getattr__(name: str) -> Any:
    """dbt asks for `Plugin`. It is made then, so that the command `penstock --root` starts without dbt."""
    if name != "Plugin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dbt.adapters.base import AdapterPlugin

    from dbt.adapters.penstock.credentials import PenstockCredentials
    from dbt.adapters.penstock.impl import PenstockAdapter
    from dbt.include import penstock

    plugin = AdapterPlugin(
        adapter=PenstockAdapter,  # type: ignore[arg-type]
        credentials=PenstockCredentials,
        include_path=penstock.PACKAGE_PATH,
        # dbt-spark's macros, so that packages with `spark__` macros work unchanged.
        dependencies=["spark"],
    )
    globals()["Plugin"] = plugin
    return plugin
