from __future__ import annotations

from penstock.changes import Merged, MergeReport


def test_the_names_of_earlier_versions_still_work() -> None:
    merged = Merged("s.a 1 to 2", inserted=1, updated=0, deleted=0, seconds=0.1, version=3)
    report = MergeReport(way="keys", ranges=[merged])
    assert report.shape == "keys"
    assert report.windows == [merged]
