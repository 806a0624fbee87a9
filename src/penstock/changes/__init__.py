"""Row-level changes of tables into a table, deletes included, in one atomic merge.

>>> from penstock import changes
>>> source = changes.ChangeSource.from_mapping({"unique_key": ["code"]})
>>> changes.merge_changes(lake, Name.parse("gold.products"), source, "select …")    # doctest: +SKIP
"""

from penstock.changes.report import Merged, MergeReport
from penstock.changes.source import ChangeSource
from penstock.changes.work import merge_changes

__all__ = ["ChangeSource", "MergeReport", "Merged", "merge_changes"]
