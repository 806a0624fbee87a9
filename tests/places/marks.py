"""The marks of tests that make no sense at every place, checked when the tests are collected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.places import PLACES

MARKS = {
    "local_disk": "local_disk(reason): the lake must be on a disk, because of the reason",
    "not_on": "not_on(place, …, reason=…): not run by `--on place`, because of the reason",
}


def skip_elsewhere(items: Sequence[pytest.Item], name: str, *, on_disk: bool) -> None:
    """Skip the tests whose marks leave this place out; a UsageError for a mark without a reason or with no such place."""
    wrong = []
    for item in items:
        for mark in (*item.iter_markers("local_disk"), *item.iter_markers("not_on")):
            if problem := _problem(mark):
                wrong.append(f"{item.nodeid}: {problem}")
            elif reason := _reason(mark, name, on_disk):
                item.add_marker(pytest.mark.skip(reason=reason))
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def _problem(mark: pytest.Mark) -> str | None:
    if mark.name == "local_disk":
        if len(mark.args) == 1 and isinstance(mark.args[0], str) and not mark.kwargs:
            return None
        return "`local_disk` takes one reason"
    if unknown := [place for place in mark.args if place not in PLACES]:
        return f"`not_on` knows {', '.join(PLACES)}, not {unknown}"
    if not mark.args or set(mark.kwargs) != {"reason"}:
        return "`not_on` takes places and `reason=`"
    return None


def _reason(mark: pytest.Mark, name: str, on_disk: bool) -> str | None:
    """The reason not to run a test here; None if it is run."""
    if mark.name == "local_disk":
        return None if on_disk else f"needs a disk: {mark.args[0]}"
    return f"not on {name}: {mark.kwargs['reason']}" if name in mark.args else None
