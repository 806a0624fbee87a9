"""A key that a user can set: what it is called, what it may be, and where it has an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config.kinds import Kind
from penstock.config.values import Check


@dataclass(frozen=True)
class Key:
    """A key, once: the checks, the adapter and the docs' reference all read it here.

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
    """How the docs say that there is no default."""
    needs: str | None = None
    """Another key, without which this one has no effect."""
    allowed: tuple[Kind, ...] = ()
    """Where it has no effect and is no error, because dbt asks for it there on other databases."""
    instead: Mapping[Kind, str] = field(default_factory=dict, hash=False)
    """What to do on a kind of model where it has no effect."""

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def values(self) -> str:
        """What the check says of a value that nothing accepts: the text of the docs."""
        try:
            self.check(object())
        except ValueError as error:
            return str(error).removeprefix("is ").removeprefix("has ")
        return "anything"

    def is_set(self, value: Any, own: bool) -> bool:
        """Whether a value asks for something: dbt fills in defaults, and packages write '' for nothing."""
        if value is None or (isinstance(value, (str, list, tuple, dict)) and not value):
            return False
        if value is False and self.default is False:
            return False
        return own or value != self.default
