"""The config of sources and models: what is wrong is said, and the user's own keys are left alone."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.change_model import change_source
from dbt.adapters.penstock.config import source_problems


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"location": "./landing", "fromat": "text"}, ["`fromat` is not known: did you mean `format`?"]),
        ({"loaction": "./landing"}, ["`loaction` is not known: did you mean `location`?"]),
        ({"location": 5, "options": "x"}, ["`location` is a path or URI, not 5", "`options` is a block"]),
        ({"location": "./landing", "format": "xls"}, ["`format` is one of delta, parquet"]),
        ({"location": "./landing", "format": "CSV", "options": {"header": True}, "owner": "us"}, []),
        ({"delta_location": "./landing", "source_options": {"a": 1}}, []),
        ({"format": "a newspaper", "options": "none"}, []),
        ({"location": "s3://a:b@c/d", "format": "csv"}, ["`location` holds credentials (a user and a password)"]),
        (
            {"location": "./x", "format": "csv", "options": {"fs.s3a.secret.key": "MaRk"}},
            ["a secret, `fs.s3a.secret.key`"],
        ),
    ],
)
def test_sources(config: dict[str, object], said: list[str]) -> None:
    found = source_problems(config)
    assert len(found) == len(said)
    for problem, part in zip(found, said, strict=True):
        assert part in problem


def test_what_is_for_a_merge_is_not_ignored_by_cdf_merge() -> None:
    model = {"unique_id": "model.m", "config": {"unique_key": "id"}}
    assert change_source(model, None).unique_key == ("id",)
    model["config"] |= {"incremental_predicates": ["id > 1"], "merge_exclude_columns": ["n"]}
    with pytest.raises(
        DbtRuntimeError, match="merge_exclude_columns, incremental_predicates is for the strategy merge"
    ):
        change_source(model, None)
