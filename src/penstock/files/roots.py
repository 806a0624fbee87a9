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
    """The roots of one plan, or of one run.

    >>> roots = Roots(("/link",), ("/link",), {"/link": "/real"})
    >>> roots.known_as("/link/a.json"), roots.located("/real/a.json")
    ('/real/a.json', '/link/a.json')
    """

    roots: tuple[str, ...] = ()
    """As they are listed and read."""
    written: tuple[str, ...] = ()
    """The same, as the config has them."""
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Roots, of this plan and of those before it, that the ledger knows by another name, each with that name."""

    @classmethod
    def first(cls, roots: Iterable[str], written: Iterable[str] = ()) -> Roots:
        """The roots of a ledger that begins."""
        roots = tuple(roots)
        aliases = {root: canonical(root) for root in roots if canonical(root) != root}
        return cls(roots, tuple(written) or roots, aliases)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Roots:
        """As a plan or compaction says; those of 0.1.0 had no aliases, and paths as the config spelled the root."""
        if "aliases" not in header:
            return cls.first(header.get("roots") or ())
        return cls(tuple(header["roots"]), tuple(header["written"]), dict(header["aliases"]))

    def to_header(self) -> dict[str, Any]:
        return {"roots": list(self.roots), "written": list(self.written), "aliases": dict(self.aliases)}

    def then(self, roots: Iterable[str], written: Iterable[str]) -> Roots:
        """The roots of a later run on the same ledger.

        A root that the config spells as before is the same root, also where that leads elsewhere now: the whole
        project was moved, or checked out in another place.
        """
        roots, written = tuple(roots), tuple(written)
        before = dict(zip(self.written, self.roots, strict=True)) | {root: root for root in self.roots}
        aliases = dict(self.aliases)
        for root, text in zip(roots, written, strict=True):
            if root not in aliases and root not in self.roots:
                name = self.name_of(before[text]) if text in before else canonical(root)
                if name != root:
                    aliases[root] = name
        return Roots(roots, written, aliases)

    def moved(self, root: str, name: str) -> Roots:
        """The same, with a root that the ledger knows by another name."""
        return replace(self, aliases={**self.aliases, root: name})

    def name_of(self, root: str) -> str:
        """The name that the ledger knows a root by."""
        return self.aliases.get(root, root)

    def unknown_to(self, before: Roots) -> list[str]:
        """Those roots that are neither one of an earlier plan's nor below one."""
        known = [before.name_of(root) for root in before.roots] + list(before.aliases.values())
        return [root for root in self.roots if not any(_is_at(self.name_of(root), name) for name in known)]

    def known_as(self, path: str) -> str:
        """The name that the ledger knows a file by."""
        return str(_renamed(pa.chunked_array([[path]], pa.string()), self._names())[0].as_py())

    def located(self, path: str) -> str:
        """Where a file lies that the ledger knows by this name."""
        return str(_renamed(pa.chunked_array([[path]], pa.string()), self._places())[0].as_py())

    def spellings(self, path: str) -> list[str]:
        """Every place that a file of this name may have been read at."""
        root = max((name for name in self.aliases.values() if _is_at(path, name)), key=len, default=None)
        others = [] if root is None else [key + path[len(root) :] for key, name in self.aliases.items() if name == root]
        return list(dict.fromkeys([self.located(path), path, *others]))

    def identify(self, files: pa.Table) -> pa.Table:
        """A listing, with the names that the ledger knows its files by."""
        if not self.aliases:
            return files
        renamed = _with_paths(files, _renamed(files["path"], self._names()))
        return _once(renamed) if len(self.roots) > 1 else renamed

    def locate(self, files: pa.Table) -> pa.Table:
        """Files by the names that the ledger knows, with the places where they lie."""
        return files if not self.aliases else _with_paths(files, _renamed(files["path"], self._places()))

    def check(self, where: str) -> None:
        """Two roots of one name must be one place."""
        for index, root in enumerate(self.roots):
            for other in self.roots[:index]:
                if self.name_of(root) == self.name_of(other) and canonical(root) != canonical(other):
                    raise PenstockError(
                        f"`source_roots` has both {other} and {root}, and one of them is known as the place that the "
                        "other was moved to",
                        where=where,
                        fix="Take the old place out of `source_roots`.",
                    )

    def _names(self) -> dict[str, str]:
        return {root: self.name_of(root) for root in [*self.roots, *self.aliases]}

    def _places(self) -> dict[str, str]:
        return {self.name_of(root): root for root in reversed(self.roots)}


def below(files: pa.Table, root: str) -> pa.Table:
    """The files below a root, by their paths below it."""
    prefix = root.rstrip("/") + "/"
    found = files.filter(pc.starts_with(files["path"], prefix))
    return _with_paths(found, pc.utf8_slice_codeunits(found["path"], len(prefix)))


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


def _once(files: pa.Table) -> pa.Table:
    """Each path once: two roots may lead to the same file."""
    if len(pc.unique(files["path"])) == files.num_rows:
        return files
    grouped = files.group_by("path").aggregate([("modificationTime", "max"), ("size", "max")])
    columns = [grouped["path"], grouped["modificationTime_max"], grouped["size_max"]]
    return pa.table(columns, schema=files.schema)
