"""A key that a user can set: its names, its values, and the kinds of model on which it has an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config.kinds import Kind
from penstock.config.values import Check


@dataclass(frozen=True)
class Key:
    """The definition of a key. The checks, the adapter and the docs' reference all use it.

    >>> from penstock.config.values import positive
    >>> Key("days_per_batch", "Neighbouring windows in one commit.", positive, (Kind.MICROBATCH,), default=1).spellings
    ('days_per_batch',)
    """

    name: str
    doc: str
    check: Check
    kinds: tuple[Kind, ...]
    default: Any = None
    aliases: tuple[str, ...] = ()
    unset: str = "none"
    """The text for a missing default in the docs."""
    needs: str | None = None
    """Another key. Without it, this key has no effect."""
    allowed: tuple[Kind, ...] = ()
    """Kinds on which the key has no effect but is no error, because dbt requires it there on other databases."""
    instead: Mapping[Kind, str] = field(default_factory=dict, hash=False)
    """Advice for kinds of model on which the key has no effect."""

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def values(self) -> str:
        """The allowed values in words, from the check's error for a value that no check accepts."""
        try:
            self.check(object())
        except ValueError as error:
            return str(error).removeprefix("must be ")
        return "anything"

    def is_set(self, value: Any, own: bool) -> bool:
        """Whether a value has a meaning. dbt fills in defaults, and packages write '' for no value."""
        if value is None or (isinstance(value, (str, list, tuple, dict)) and not value):
            return False
        if value is False and self.default is False:
            return False
        return own or value != self.default
