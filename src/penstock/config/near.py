"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Words that do not matter when names are compared.
_FILLERS = {"by", "in", "is", "not", "of", "on", "per", "the", "to", "with"}


def nearest(key: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name with the most similar letters; None if no name is similar.

    >>> nearest("memroy", ["master", "memory"])
    'memory'
    """
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def meant(key: str, known: Iterable[str], cutoff: float = 0.85) -> str | None:
    """The known key that a key was probably meant to be, judged by its letters and words; else None.

    The comparison is strict, because a model may have keys of its own with any name.

    >>> meant("safety_buffer", ["safety_buffer_seconds"]), meant("buffer", ["safety_buffer_seconds"])
    ('safety_buffer_seconds', None)
    """
    known = list(known)
    return nearest(key, known, cutoff) or nearest(key, [name for name in known if _shares_words(key, name)], 0)


def _shares_words(key: str, name: str) -> bool:
    given, words = _words(key), _words(name)
    common = given & words
    if len(common) < 2:
        return False
    # All words of the key are in the name, or all but one.
    other = len(given - words) == 1 and len(words) >= 3
    return given <= words or (other and difflib.SequenceMatcher(None, key, name).ratio() >= 0.7)


def _words(key: str) -> set[str]:
    return {word.removesuffix("s") for word in key.lower().split("_") if word and word not in _FILLERS}


def unknown_keys(given: Iterable[str], known: Iterable[str], where: str = "") -> list[str]:
    """A sentence for each unknown key, with a suggestion."""
    known = list(known)
    problems = []
    for key in given:
        if key not in known:
            guess = meant(key, known, cutoff=0.6)
            hint = f"did you mean `{guess}`?" if guess else f"known are {', '.join(sorted(known))}"
            problems.append(f"`{where}{key}` is not known: {hint}")
    return problems
