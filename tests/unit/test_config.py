"""The config of sources: all errors in one message, and the user's own keys left alone."""

from __future__ import annotations

import pytest

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
    ],
)
def test_sources(config: dict[str, object], said: list[str]) -> None:
    found = source_problems(config)
    assert len(found) == len(said)
    for problem, part in zip(found, said, strict=True):
        assert part in problem
