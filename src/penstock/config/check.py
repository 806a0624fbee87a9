"""Checks of the config of models and sources: they collect everything that is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config.key import Key
from penstock.config.keys import ALIASES, BY_NAME, KNOWN, OF_MODELS, OF_SOURCES, SECTIONS
from penstock.config.kinds import ROOTS, STRATEGIES, Kind, in_words, kind_of, strategy
from penstock.config.near import meant, unknown_keys
from penstock.config.values import checked
from penstock.secrets import is_secret

# Keys of dbt-spark with another name here. If they were ignored, data would be in the wrong place.
_REPLACED = {
    "location_root": "`location`, the table's own folder",
    "clustered_by": "`cluster_by` (liquid clustering)",
    "buckets": "`cluster_by` (liquid clustering)",
}
_BY_FILE = (
    "each file's rows are added once. To merge or replace rows, load the files here, and merge in a model that reads "
    "this one"
)
_NOT_FOR_PYTHON = ("cdf_merge", "microbatch")


@dataclass
class Found:
    """The problems in a config, as sentences."""

    errors: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Keys without effect that a folder of the project or a package sets for many models. These are not errors."""


def resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with every alias replaced by the key's own name.

    >>> resolved({"tblproperties": {"a": "b"}})["table_properties"]
    {'a': 'b'}
    """
    plain = dict(config)
    for alias, name in ALIASES.items():
        if plain.get(alias) is not None and not plain.get(name):
            plain[name] = plain[alias]
    return plain


def check_model(
    config: Mapping[str, Any],
    *,
    own: Collection[str] = (),
    extra: Iterable[str] = (),
    language: str = "sql",
    strategies: Collection[str] = (),
    by_package: bool = False,
) -> Found:
    """Everything that is wrong with a model's config, and the ignored keys without effect.

    `own` are the keys that the model itself sets, in its SQL or its own YAML. If a folder or a package sets a key
    without effect, this is an error only if rows would be wrong. `extra` are the keys that dbt does not know.
    `strategies` are the incremental strategies that the project has macros for.

    >>> check_model({"materialized": "view", "cluster_by": "day"}, own=["cluster_by"]).errors
    ['`cluster_by` has no effect on a view: it works on tables of every kind']
    """
    found = Found()
    plain = resolved(config)
    kind = kind_of(plain, language)
    mine = () if by_package else own
    given = {key.name: key for key in OF_MODELS if _spelling(key, config, mine) is not None}
    if kind is not None:
        _check_strategy(plain, kind, language, strategies, given, mine, found)
        for key in given.values():
            if key.name != "incremental_strategy" or kind not in key.kinds:
                _check_key(key, config, plain, kind, language, mine, found)
    _check_names(extra, mine, by_package, found)
    return found


def check_source(config: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with the location keys of a source. All other keys belong to the user."""
    given = {key: value for key, value in config.items() if value is not None}
    plain = resolved(given)
    with_files = "source_roots" in plain
    used = {key.name: key.check for key in OF_SOURCES if _is_used(key, plain, with_files)}
    found = checked(plain, used)[1]
    options = plain.get("options") if "options" in used else None
    found += [
        f"`options` holds a secret, `{name}`, which would be written to `_link.json` for every reader of the lake: "
        "put it in `session.spark_config`, as `{{ env_var('…') }}`"
        for name in (options if isinstance(options, Mapping) else ())
        if is_secret(str(name))
    ]
    for name in given:
        key = BY_NAME.get(name)
        if key is not None and key.name not in used and (with_files or "location" in plain):
            where = "a source" if Kind.SOURCE not in key.kinds else f"a source without `{ROOTS[0]}`"
            found.append(f"`{name}` has no effect on {where}: it works on {in_words(key.kinds)}")
        # There are only a few names, so the comparison can be less strict. It finds `fromat`.
        guess = meant(name, used, cutoff=0.8)
        if key is None and guess not in (None, name):
            found.append(f"`{name}` is not known: did you mean `{guess}`?")
    return found


def _is_used(key: Key, config: Mapping[str, Any], with_files: bool) -> bool:
    if key in SECTIONS["Files"]:
        return with_files
    if key in SECTIONS["Sources"]:
        return "location" in config
    return True


def _spelling(key: Key, config: Mapping[str, Any], own: Collection[str]) -> str | None:
    """The name under which a config sets a key; None if it does not set the key."""
    return next((name for name in key.spellings if key.is_set(config.get(name), name in own)), None)


def _check_key(
    key: Key,
    config: Mapping[str, Any],
    plain: Mapping[str, Any],
    kind: Kind,
    language: str,
    own: Collection[str],
    found: Found,
) -> None:
    name = _spelling(key, config, own)
    assert name is not None
    is_own = any(spelling in own for spelling in key.spellings if key.is_set(config.get(spelling), True))
    if len(twice := [spelling for spelling in key.spellings if spelling in own and config.get(spelling)]) > 1:
        found.errors.append(f"`{twice[0]}` is set twice: `{twice[1]}` is another name of it")
    if kind not in key.kinds:
        line = _without_effect(name, key, kind, language)
        always = (kind is Kind.FILES and key.name == "unique_key") or (language == "python" and key.name in ROOTS)
        # With replaced windows no row is doubled, with or without a key. With added windows rows may be doubled.
        allowed = kind in key.allowed and config.get("delete_before_insert") is not False
        (found.errors if always or (is_own and not allowed) else found.ignored).append(line)
    elif key.needs is not None and not plain.get(key.needs):
        line = f"`{name}` has no effect without `{key.needs}`"
        (found.errors if is_own else found.ignored).append(line)
    else:
        found.errors += checked({name: config[name]}, {name: key.check})[1]


def _without_effect(name: str, key: Key, kind: Kind, language: str) -> str:
    what = kind.text if language == "sql" else f"{kind.text} in Python"
    if key.name == "incremental_strategy" and kind is not Kind.FILES:
        line = f"`{name}` has no effect on {what}: it works on incremental models"
    else:
        line = f"`{name}` has no effect on {what}: it works on {in_words(key.kinds)}"
    return f"{line}. {key.instead[kind][0].upper()}{key.instead[kind][1:]}" if kind in key.instead else line


def _check_strategy(
    config: Mapping[str, Any],
    kind: Kind,
    language: str,
    own_strategies: Collection[str],
    given: Mapping[str, Key],
    own: Collection[str],
    found: Found,
) -> None:
    """Check that the config's strategy exists and works on this kind of model."""
    value = config.get("incremental_strategy")
    if "incremental_strategy" not in given or not kind.is_incremental:
        return
    named = strategy(config)
    if kind is Kind.FILES:
        if named == "append":
            return
        line = f"`incremental_strategy` must be append or microbatch on an incremental model over @data, not {value!r}"
        # Without a key these two strategies add every row, and so do loads of files.
        harmless = named in ("merge", "delete+insert") and not config.get("unique_key")
        if "incremental_strategy" in own or not harmless:
            found.errors.append(f"{line}: {_BY_FILE}")
        else:
            found.ignored.append(line)
    elif language == "python" and named in _NOT_FOR_PYTHON:
        possible = ", ".join(name for name in STRATEGIES if name not in _NOT_FOR_PYTHON)
        found.errors.append(f"`incremental_strategy` of a Python model must be one of {possible}, not {value!r}")
    elif named not in STRATEGIES and str(value).replace("+", "_") not in own_strategies:
        possible = ", ".join([*STRATEGIES, *sorted(own_strategies)])
        macro = f"get_incremental_{str(value).replace('+', '_')}_sql"
        found.errors.append(
            f"`incremental_strategy` must be one of {possible}, not {value!r}: dbt could not find an incremental strategy "
            f'macro with the name "{macro}"'
        )


def _check_names(extra: Iterable[str], own: Collection[str], by_package: bool, found: Found) -> None:
    for key in extra:
        if key in _REPLACED:
            found.errors.append(f"`{key}` is a key of dbt-spark: use {_REPLACED[key]} instead")
        elif key not in KNOWN and (guess := meant(key, KNOWN)) is not None:
            line = f"`{key}` is not known: did you mean `{guess}`?"
            (found.ignored if by_package else found.errors).append(line)


def unusable(given: Iterable[str], known: Collection[str], kind: Kind) -> list[str]:
    """A sentence for each argument of a Python function that is unknown or belongs to another kind of table.

    >>> unusable(["lookback"], ["source_roots"], Kind.FILES)
    ['`lookback` has no effect on an incremental model over @data: it works on microbatch models']
    """
    lines = []
    for name in given:
        key = BY_NAME.get(name)
        if name in known:
            continue
        if key is not None and kind not in key.kinds:
            lines.append(_without_effect(name, key, kind, "sql"))
        else:
            lines += unknown_keys([name], known)
    return lines
