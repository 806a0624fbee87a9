"""The roots that a model's files are below, and the names that the ledger has for them.

The ledger knows a file by its canonical path: the canonical path of its root, and the path below. A config may spell a
root in another way: through a link, with s3a:// for s3://, or because its folder was moved. Then an alias leads from
the root of the config to the name in the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.storage import is_below, is_uri, one_spelling, prefix

READ_PATH = "place"
"""The column for the path that a file is read from, if that is not its name. On disk it is called `place`."""


def canonical(root: str) -> str:
    """The same name for all spellings of a root: links on disk are resolved, each kind of store has one scheme.

    >>> canonical("s3a://bucket/landing")
    's3://bucket/landing'
    """
    return one_spelling(root) if is_uri(root) else os.path.realpath(root)


@dataclass(frozen=True)
class Roots:
    """The roots of one plan or of one run, and their names in the ledger.

    >>> Roots(("/link",), {"/link": "/real"}, {"/link": "/real"}).known_as("/link/a.json")
    '/real/a.json'
    """

    roots: tuple[str, ...] = ()
    """The roots as they are listed and read."""
    written: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Every root that the ledger has had, as a config spelled it, with its name in the ledger."""
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Every root whose name in the ledger is another than the path it is read by, with that name."""

    @classmethod
    def first(cls, roots: Iterable[str], written: Iterable[str] = ()) -> Roots:
        """The roots of a new ledger."""
        return cls().then(roots, written)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Roots:
        """The roots in the header of a plan or compaction.

        Records of 0.1.0 have no aliases, and their paths begin with the root as the config spelled it.
        """
        if "aliases" not in header:
            return cls.first(header.get("roots") or ())
        return cls(tuple(header["roots"]), dict(header["written"]), dict(header["aliases"]))

    def to_header(self) -> dict[str, Any]:
        return {"roots": list(self.roots), "written": dict(self.written), "aliases": dict(self.aliases)}

    def then(self, roots: Iterable[str], written: Iterable[str] = ()) -> Roots:
        """The roots of a later run on the same ledger.

        A root with the same spelling as before is the same root, even if it leads to another folder now: the whole
        project was moved, or checked out elsewhere.
        """
        roots = tuple(roots)
        texts = dict(zip(roots, tuple(written) or roots, strict=True))
        names, aliases = dict(self.written), dict(self.aliases)
        for root, text in texts.items():
            known = next((names[spelling] for spelling in (text, root) if spelling in names), None)
            name = known or _through(self.aliases, canonical(root))
            names |= {text: name, root: name}
            if name == root:
                aliases.pop(root, None)
            else:
                aliases[root] = name
        return Roots(roots, names, aliases)

    def moved(self, root: str, name: str) -> Roots:
        """The same roots, one of which the ledger knows by another name."""
        old = self.name_of(root)
        written = {text: name if known == old else known for text, known in self.written.items()}
        return replace(self, written=written, aliases={**self.aliases, root: name})

    def name_of(self, root: str) -> str:
        """The name that the ledger knows a root by."""
        return self.aliases.get(root, root)

    @property
    def names(self) -> tuple[str, ...]:
        """The ledger's names of all roots, past and present."""
        return tuple(dict.fromkeys(self.written.values()))

    def unknown_to(self, before: Roots) -> list[str]:
        """The roots that are neither a root of an earlier plan nor below one."""
        return [root for root in self.roots if not any(_is_at(self.name_of(root), name) for name in before.names)]

    def known_as(self, path: str) -> str:
        """The name that the ledger knows a file by."""
        return str(_renamed(pa.chunked_array([[path]], pa.string()), self._names())[0].as_py())

    def identify(self, files: pa.Table) -> pa.Table:
        """Listed files with their names in the ledger as paths. READ_PATH is the listed path if that is another."""
        if not self.aliases:
            return _with_read_paths(files, pa.nulls(files.num_rows, pa.string()))
        names = _renamed(files["path"], self._names())
        elsewhere = pc.if_else(pc.equal(names, files["path"]), pa.scalar(None, pa.string()), files["path"])
        return _with_read_paths(_with_paths(files, names), elsewhere)

    def listed(self, files: pa.Table) -> pa.Table:
        """The same for a whole listing, each file once: two roots may lead to the same file."""
        return _once(self.identify(files)) if self.aliases and len(self.roots) > 1 else self.identify(files)

    def check(self, where: str) -> None:
        """Raise if two roots are not to each other as their names are: two files could get the same name."""
        for root in self.roots:
            for other in self.roots:
                name, above = self.name_of(root), self.name_of(other)
                if _is_at(name, above) and canonical(root) != canonical(other) + name[len(above) :]:
                    raise PenstockError(
                        f"`source_roots` has both {other} and {root}, but one of them was moved to the other: the ledger "
                        "has one name for both",
                        where=where,
                        fix="Take the old root out of `source_roots`.",
                    )

    def _names(self) -> dict[str, str]:
        return {root: self.name_of(root) for root in [*self.roots, *self.aliases]}


def located(files: pa.Table) -> pa.Table:
    """Files that have their names in the ledger as paths, with the paths that they are read from instead."""
    return _with_paths(files, pc.coalesce(files[READ_PATH], files["path"]))


def below(files: pa.Table, root: str) -> pa.Table:
    """The files below a root, with their paths below it."""
    above = prefix(root)
    found = files.filter(pc.starts_with(files["path"], above))
    return _with_paths(found, pc.utf8_slice_codeunits(found["path"], len(above)))


def _through(aliases: Mapping[str, str], root: str) -> str:
    """The name of a root: by the alias of the root itself, or of the nearest root above it."""
    above = max((spelling for spelling in aliases if _is_at(root, spelling)), key=len, default=None)
    return root if above is None else aliases[above] + root[len(above) :]


def _is_at(path: str, root: str) -> bool:
    return path == root or is_below(path, root)


def _renamed(paths: pa.ChunkedArray, names: Mapping[str, str]) -> pa.ChunkedArray:
    """Paths with the names of their roots. A path below two roots belongs to the longer one."""
    left = None
    for root in sorted(names, key=len, reverse=True):
        mine = pc.starts_with(paths, prefix(root))
        mine = mine if left is None else pc.and_(mine, left)
        if names[root] != root:
            tail = pc.utf8_slice_codeunits(paths, len(root.rstrip("/")))
            renamed = pc.binary_join_element_wise(names[root].rstrip("/"), tail, "")
            # A renamed path may be below another root. So it is taken out of the mask of paths that are left.
            paths, left = pc.if_else(mine, renamed, paths), _without(left, mine)
        else:
            left = _without(left, mine)
    return paths


def _without(left: pa.ChunkedArray | None, mine: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(mine) if left is None else pc.and_(left, pc.invert(mine))


def _with_paths(files: pa.Table, paths: pa.ChunkedArray) -> pa.Table:
    return files.set_column(files.schema.get_field_index("path"), "path", paths)


def _with_read_paths(files: pa.Table, paths: pa.ChunkedArray) -> pa.Table:
    at = files.schema.get_field_index(READ_PATH)
    return files.append_column(READ_PATH, paths) if at < 0 else files.set_column(at, READ_PATH, paths)


def _once(files: pa.Table) -> pa.Table:
    """The first file of each name."""
    if len(pc.unique(files["path"])) == files.num_rows:
        return files
    seen: set[str] = set()
    first = [not (path in seen or seen.add(path)) for path in files["path"].to_pylist()]  # type: ignore[func-returns-value]
    return files.filter(pa.array(first, pa.bool_()))
