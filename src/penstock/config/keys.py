"""Every key that a user can set, by section and by name.

Each key is defined once, for the checks and the docs. The config class of its pipeline has a field with the same name
and default; tests compare them. `file_keys` says how to add a key.
"""

from __future__ import annotations

from penstock.config.file_keys import FILES, OF_A_SOURCE
from penstock.config.key import Key
from penstock.config.kinds import Kind
from penstock.config.model_keys import CHANGES, INCREMENTALS, LAYOUT, OF_DBT, POLICIES, SIZES, WINDOW_KEYS
from penstock.config.profile_keys import PROFILE

__all__ = [
    "ALIASES",
    "BY_NAME",
    "DBT",
    "FILES",
    "KNOWN",
    "LAYOUT",
    "OF_MODELS",
    "OF_SOURCES",
    "POLICIES",
    "PROFILE",
    "SECTIONS",
    "SIZES",
    "WINDOW_KEYS",
]

SECTIONS: dict[str, tuple[Key, ...]] = {
    "Layout": LAYOUT,
    "Incremental models": INCREMENTALS,
    "Changes": CHANGES,
    "Files": FILES,
    "Windows": WINDOW_KEYS,
    "dbt's own": OF_DBT,
    "Sources": OF_A_SOURCE,
}
OF_MODELS = tuple(key for title, keys in SECTIONS.items() for key in keys if title != "Sources")
OF_SOURCES = tuple(key for keys in SECTIONS.values() for key in keys if Kind.SOURCE in key.kinds)
# Other keys of dbt. They are listed so that a typo in one of them is found.
DBT = ("materialized", "contract", "hard_deletes", "store_failures", "store_failures_as")
ALIASES = {alias: key.name for keys in SECTIONS.values() for key in keys for alias in key.aliases}
BY_NAME = {spelling: key for key in OF_MODELS for spelling in key.spellings}
KNOWN = (*BY_NAME, *DBT)
