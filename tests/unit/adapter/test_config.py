"""The config of sources and models: what is wrong is said, and the user's own keys are left alone."""

from __future__ import annotations

import pytest

from dbt.adapters.penstock.config import source_problems


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"location": "./landing", "fromat": "text"}, ["`fromat` is not known: did you mean `format`?"]),
        ({"loaction": "./landing"}, ["`loaction` is not known: did you mean `location`?"]),
        ({"location": 5, "options": "x"}, ["`location` must be a path or URI, not 5", "`options` must be a block"]),
        ({"location": "./landing", "format": "xls"}, ["`format` must be one of delta, parquet"]),
        ({"location": "./landing", "format": "CSV", "options": {"header": True}, "owner": "us"}, []),
        ({"delta_location": "./landing", "options": {"a": 1}}, []),
        ({"location": "./landing", "source_options": {"a": 1}}, ["`source_options` has no effect on a source without"]),
        ({"location": "./landing", "change_data_feed": True}, ["`change_data_feed` has no effect on a source:"]),
        ({"source_roots": ["landing"], "max_files_per_trigger": 0}, ["`max_files_per_trigger` must be a whole number"]),
        ({"source_roots": ["landing"], "safety_buffer": 0}, ["did you mean `safety_buffer_seconds`?"]),
        ({"owner": "us", "max_files_per_trigger": "none of yours"}, []),
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
