"""The known name that a mistyped one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Words that say nothing of what a key is about.
_FILLERS = {"by", "in", "is", "not", "of", "on", "per", "the", "to", "with"}


def nearest(key: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name of about the same letters.

    >>> nearest("memroy", ["master", "memory"])
    'memory'
    """
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def meant(key: str, known: Iterable[str], cutoff: float = 0.85) -> str | None:
    """The known key of nearly the same letters, or of the same words; careful, because a model may have keys of any name.

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
    # A key with all of its words in the name, or with one other word in place of one.
    other = len(given - words) == 1 and len(words) >= 3
    return given <= words or (other and difflib.SequenceMatcher(None, key, name).ratio() >= 0.7)


def _words(key: str) -> set[str]:
    return {word.removesuffix("s") for word in key.lower().split("_") if word and word not in _FILLERS}


def unknown_keys(given: Iterable[str], known: Iterable[str], where: str = "") -> list[str]:
    """A line for each key that is not known, with the nearest that is."""
    known = list(known)
    problems = []
    for key in given:
        if key not in known:
            guess = meant(key, known, cutoff=0.6)
            hint = f"did you mean `{guess}`?" if guess else f"known are {', '.join(sorted(known))}"
            problems.append(f"`{where}{key}` is not known: {hint}")
    return problems
