"""No rescued value is lost: not by the SELECT, and not by a window."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.files.reading.rescued import check_selected, inside_or_raise


def test_the_select_must_return_the_rescued_column():
    check_selected(None, ["id"], "bronze.events")
    check_selected("Rescued", ["id", "rescued"], "bronze.events")
    with pytest.raises(PenstockError, match=r"bronze\.events.*Select `?rescued`? from @data"):
        check_selected("rescued", ["id"], "bronze.events")


def test_a_row_whose_time_was_rescued_raises():
    condition = inside_or_raise("at > 1", "at", "rescued")
    assert condition.startswith("case when `at` is null and `rescued` is not null then raise_error(")
    assert condition.endswith("else at > 1 end")
