"""The docs' reference of all keys, as Markdown, made from the table of keys."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.config.key import Key
from penstock.config.keys import OF_MODELS, OF_SOURCES, PROFILE, SECTIONS
from penstock.config.kinds import BY_STRATEGY, Kind, places

_INTRO = """# Every key

<!-- Made by `make reference` from src/penstock/config/keys.py: change it there. -->

A key that a model sets itself, in its `config()` or beside its name in YAML, and that has no effect on a model of its kind, is an
error that says where it works; so is a value that the key can't have, and a name that is nearly that of a key. All that is
wrong with a model is in one message.

A key that a folder of `dbt_project.yml` sets for its models, or a package for its own, is let be where it has no effect
(`dbt --debug` tells of it), with two exceptions, because rows would be doubled: `unique_key`, and a strategy that replaces
rows, for an incremental model over `@data`. Keys that are not listed here are the project's own.
Empty values (`none`, `''`, `[]`, `{}`) are no values.

A model is *over `@data`* when it has `source_roots` or `file_source` (a microbatch model also with `source_path`). A Python model
is a table, or incremental by append, merge, insert_overwrite, delete+insert, replace_where or a strategy of your own, and its keys
work as those of SQL do.
"""
_STATES = {
    "Layout": "How the table of a model is laid out. From Python: `partition_by`, `cluster_by`, and `properties` for `table_properties`.",
    "Incremental models": "How rows come in.",
    "Changes": "Of models by `cdf_merge`; the guide is [changes.md](changes.md). From Python the same keys, with `key` for `unique_key`.",
    "Files": "Of models over `@data`, and of sources that `file_source` names; the guide is [files.md](files.md). From Python "
    "(`lake.ingest`) the same keys, also `roots` for `source_roots`.",
    "Windows": "Of microbatch models; the guide is [microbatch.md](microbatch.md).",
    "dbt's own": "dbt's other keys work as its documentation says.",
    "Sources": "Of a source whose data lie at `location`.",
}


def page() -> str:
    """The whole of `docs/reference.md`."""
    parts = [_INTRO]
    for title, keys in SECTIONS.items():
        parts.append(f"## {title}\n\n{_STATES[title]}\n\n{table(keys)}")
    parts.append("## Keys by kind of model\n\nBesides those that work on every model: " + _names(_everywhere()) + ".\n")
    rows = ["| kind | keys |", "|---|---|"]
    rows += [f"| {_title(kind)} | {_names(_special(kind)) or 'none'} |" for kind in Kind]
    parts.append("\n".join(rows) + "\n")
    parts.append("## The profile\n\n" + profile())
    return "\n".join(parts)


def table(keys: Iterable[Key]) -> str:
    """Keys as rows: what each may be, its default, where it works, what it does."""
    rows = ["| key | value | default | works on | meaning |", "|---|---|---|---|---|"]
    rows += [
        f"| {_spelled(key)} | {_cell(key.values)} | {_default(key)} | {_cell(places(key.kinds))}{_needs(key)} | {key.doc} |"
        for key in keys
    ]
    return "\n".join(rows) + "\n"


def profile() -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    rows += [f"| `{key.name}` | {_cell(key.values)} | {_default(key)} | {key.doc} |" for key in PROFILE]
    return "\n".join(rows) + "\n"


def _everywhere() -> list[Key]:
    return [key for key in OF_MODELS if set(Kind) - {Kind.SOURCE} <= set(key.kinds)]


def _special(kind: Kind) -> list[Key]:
    everywhere = [] if kind is Kind.SOURCE else _everywhere()
    return [
        key for key in (OF_SOURCES if kind is Kind.SOURCE else OF_MODELS) if kind in key.kinds and key not in everywhere
    ]


def _title(kind: Kind) -> str:
    return f"incremental by {kind.value}" if kind in BY_STRATEGY else kind.value


def _names(keys: Iterable[Key]) -> str:
    return ", ".join(f"`{key.name}`" for key in keys)


def _spelled(key: Key) -> str:
    also = ", ".join(f"`{alias}`" for alias in key.aliases)
    return f"`{key.name}`" + (f" (also {also})" if also else "")


def _default(key: Key) -> str:
    if key.default is None or key.default in ((), {}):
        return key.unset
    return f"`{str(key.default).lower()}`" if isinstance(key.default, bool) else f"`{key.default}`"


def _needs(key: Key) -> str:
    return f", with `{key.needs}`" if key.needs else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("@data", "`@data`")
