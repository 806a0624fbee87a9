"""Row-level changes of tables into a table, deletes included, in one atomic merge.

>>> from penstock import changes
>>> source = changes.ChangeSource.from_mapping({"unique_key": ["code"]})
>>> changes.merge_changes(lake, Name.parse("gold.products"), source, "select …")    # doctest: +SKIP
"""

from penstock.changes.config import ChangeSource
from penstock.changes.job import merge_changes
from penstock.changes.report import Merged, MergeReport

__all__ = ["ChangeSource", "MergeReport", "Merged", "merge_changes"]
