"""Draws the imports between the engine's packages into docs/design.md: `make graph`."""

from __future__ import annotations

import sys
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "design.md"
BEGIN, END = "<!-- imports: begin (written by `make graph`) -->\n", "<!-- imports: end -->\n"
ROOT = "penstock"


def edges() -> set[tuple[str, str]]:
    """Which package, or module directly below the root, imports which."""
    graph = grimp.build_graph(ROOT, cache_dir=None)
    found = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = _package(importer), _package(imported)
            if pair[0] != pair[1] and ROOT not in pair:
                found.add(pair)
    return found


def reduced(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges without those that a longer way implies: what is left can be read."""
    return {(start, end) for start, end in found if end not in _reached(found - {(start, end)}, start)}


def picture() -> str:
    """The graph as Mermaid draws it.

    An arrow points to what is imported. Arrows that follow from others are left out.
    """
    lines = sorted(f"    {start} --> {end}" for start, end in reduced(edges()))
    return "\n".join([f"{BEGIN}```mermaid", "flowchart TD", *lines, f"```\n{END}"])


def page() -> str:
    """docs/design.md with the graph as it is now."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return before + picture() + after


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else ROOT


def _reached(found: set[tuple[str, str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        step = waiting.pop()
        for begin, end in found:
            if begin == step and end not in reached:
                reached.add(end)
                waiting.append(end)
    return reached


if __name__ == "__main__":
    if "--check" in sys.argv and PAGE.read_text() != page():
        sys.exit("The imports in docs/design.md are out of date: run `make graph`")
    if "--check" not in sys.argv:
        PAGE.write_text(page())
