"""The table that a run writes: whether the run may write it, and whether it replaces what is there."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.lake.folder import LakeFolder
from penstock.sql.names import Name


def replaces(lake: LakeFolder, name: Name, *, full_refresh: bool) -> bool:
    """Whether the first plan of a run builds the relation anew: for a full refresh, and in the place of a view.

    PenstockError if the lake is read-only, or if the name is a relation over files elsewhere.
    """
    lake.check_writable()
    found = lake.find(name)
    if found is not None and found.kind == "files":
        raise PenstockError(
            f"{name} is a relation over files elsewhere, and cannot become a table",
            where=found.location,
            fix="Give the model another name.",
        )
    return full_refresh or (found is not None and found.kind == "view")
