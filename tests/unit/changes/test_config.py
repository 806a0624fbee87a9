"""The config of models that follow changes."""

from __future__ import annotations

import pytest

from penstock.changes.config import ChangeSource
from penstock.errors import PenstockError


def test_a_wrong_config_is_told_at_once():
    with pytest.raises(PenstockError) as caught:
        ChangeSource.from_mapping(
            {"cdf_max_versions": 0, "on_cdf_gap": "ignore", "cdf_source": "a", "cdf_sources": "b"}, where="m"
        )
    for part in ("`unique_key` is missing", "`cdf_max_versions`", "`on_cdf_gap`", "`cdf_source`", "cdf_sources"):
        assert part in str(caught.value)
