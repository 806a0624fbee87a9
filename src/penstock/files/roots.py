"""The roots that a model's files lie below, and under which names the ledger knows them.

A file is known by its canonical path: that of its root, written in one way, and its path below. Where a root is spelled
otherwise than the ledger knows it, through a link, as s3a:// for s3://, or because its folder was moved, an alias leads
from the one to the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.storage import is_uri

_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "gcs": "gs"}
_SLASHES = re.compile(r"/{2,}")


def spelled(root: str) -> str:
    """A root as it is listed and read: a URI with its scheme in lower case, and no doubled slashes.

    >>> spelled("S3A://bucket//landing/")
    's3a://bucket/landing'
    """
    if not is_uri(root):
        return root
    scheme, rest = root.split("://", 1)
    return f"{scheme.lower()}://{_SLASHES.sub('/', rest).strip('/')}"


def canonical(root: str) -> str:
    """The one name of a root, however it is spelled: links of the disk resolved, one scheme for each kind of store.

    >>> canonical("s3a://bucket/landing")
    's3://bucket/landing'
    """
    if not is_uri(root):
        return os.path.realpath(root)
    scheme, rest = spelled(root).split("://", 1)
    return f"{_SAME_STORE.get(scheme, scheme)}://{rest}"


@dataclass(frozen=True)
class Roots:
    """The roots of one plan, or of one run, and what the ledger calls them.

    >>> Roots(("/link",), {"/link": "/real"}, {"/link": "/real"}).known_as("/link/a.json")
    '/real/a.json'
    """

    roots: tuple[str, ...] = ()
    """As they are listed and read."""
    written: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Every root that the ledger has had, as a config wrote it, with its name there."""
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Every root that the ledger knows by another name than it is read by, with that name."""

    @classmethod
    def first(cls, roots: Iterable[str], written: Iterable[str] = ()) -> Roots:
        """The roots of a ledger that begins."""
        return cls().then(roots, written)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Roots:
        """As a plan or compaction says; those of 0.1.0 had no aliases, and paths as the config spelled the root."""
        if "aliases" not in header:
            return cls.first(header.get("roots") or ())
        return cls(tuple(header["roots"]), dict(header["written"]), dict(header["aliases"]))

    def to_header(self) -> dict[str, Any]:
        return {"roots": list(self.roots), "written": dict(self.written), "aliases": dict(self.aliases)}

    def then(self, roots: Iterable[str], written: Iterable[str] = ()) -> Roots:
        """The roots of a later run on the same ledger.

        A root that a config wrote before is the same root, also where that leads elsewhere now: the whole project was
        moved, or checked out in another place.
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
        """The same, with a root that the ledger knows by another name."""
        old = self.name_of(root)
        written = {text: name if known == old else known for text, known in self.written.items()}
        return replace(self, written=written, aliases={**self.aliases, root: name})

    def name_of(self, root: str) -> str:
        """The name that the ledger knows a root by."""
        return self.aliases.get(root, root)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all roots that the ledger has had."""
        return tuple(dict.fromkeys(self.written.values()))

    def unknown_to(self, before: Roots) -> list[str]:
        """Those roots that are neither one of an earlier plan's nor below one."""
        return [root for root in self.roots if not any(_is_at(self.name_of(root), name) for name in before.names)]

    def known_as(self, path: str) -> str:
        """The name that the ledger knows a file by."""
        return str(_renamed(pa.chunked_array([[path]], pa.string()), self._names())[0].as_py())

    def identify(self, files: pa.Table) -> pa.Table:
        """Files as they are listed, by the names that the ledger knows them by; `place` is where they lie, if elsewhere."""
        if not self.aliases:
            return _with_places(files, pa.nulls(files.num_rows, pa.string()))
        names = _renamed(files["path"], self._names())
        elsewhere = pc.if_else(pc.equal(names, files["path"]), pa.scalar(None, pa.string()), files["path"])
        return _with_places(_with_paths(files, names), elsewhere)

    def listed(self, files: pa.Table) -> pa.Table:
        """The same of a listing, each file once: two roots may lead to the same one."""
        return _once(self.identify(files)) if self.aliases and len(self.roots) > 1 else self.identify(files)

    def check(self, where: str) -> None:
        """Two roots must have names that lie to each other as they do: else two files could have one name."""
        for root in self.roots:
            for other in self.roots:
                name, above = self.name_of(root), self.name_of(other)
                if _is_at(name, above) and canonical(root) != canonical(other) + name[len(above) :]:
                    raise PenstockError(
                        f"`source_roots` has both {other} and {root}, and one of them is known as the place that the "
                        "other was moved to",
                        where=where,
                        fix="Take the old place out of `source_roots`.",
                    )

    def _names(self) -> dict[str, str]:
        return {root: self.name_of(root) for root in [*self.roots, *self.aliases]}


def located(files: pa.Table) -> pa.Table:
    """Files by the names that the ledger knows, with the places where they lie as their paths."""
    return _with_paths(files, pc.coalesce(files["place"], files["path"]))


def below(files: pa.Table, root: str) -> pa.Table:
    """The files below a root, by their paths below it."""
    prefix = root.rstrip("/") + "/"
    found = files.filter(pc.starts_with(files["path"], prefix))
    return _with_paths(found, pc.utf8_slice_codeunits(found["path"], len(prefix)))


def _through(aliases: Mapping[str, str], root: str) -> str:
    """The name of a root that lies at or below one which has another name."""
    above = max((spelling for spelling in aliases if _is_at(root, spelling)), key=len, default=None)
    return root if above is None else aliases[above] + root[len(above) :]


def _is_at(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _renamed(paths: pa.ChunkedArray, names: Mapping[str, str]) -> pa.ChunkedArray:
    """Paths with one root in place of another; a path below two of them goes by the longer."""
    left = None
    for root in sorted(names, key=len, reverse=True):
        mine = pc.starts_with(paths, root.rstrip("/") + "/")
        mine = mine if left is None else pc.and_(mine, left)
        if names[root] != root:
            tail = pc.utf8_slice_codeunits(paths, len(root.rstrip("/")))
            renamed = pc.binary_join_element_wise(names[root].rstrip("/"), tail, "")
            # What was renamed is not to be taken for another root's: the mask is of the paths as they came.
            paths, left = pc.if_else(mine, renamed, paths), _without(left, mine)
        else:
            left = _without(left, mine)
    return paths


def _without(left: pa.ChunkedArray | None, mine: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(mine) if left is None else pc.and_(left, pc.invert(mine))


def _with_paths(files: pa.Table, paths: pa.ChunkedArray) -> pa.Table:
    return files.set_column(files.schema.get_field_index("path"), "path", paths)


def _with_places(files: pa.Table, places: pa.ChunkedArray) -> pa.Table:
    at = files.schema.get_field_index("place")
    return files.append_column("place", places) if at < 0 else files.set_column(at, "place", places)


def _once(files: pa.Table) -> pa.Table:
    """Each name once."""
    if len(pc.unique(files["path"])) == files.num_rows:
        return files
    seen: set[str] = set()
    first = [not (path in seen or seen.add(path)) for path in files["path"].to_pylist()]  # type: ignore[func-returns-value]
    return files.filter(pa.array(first, pa.bool_()))
