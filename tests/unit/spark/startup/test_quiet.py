"""py4j and pyspark print nothing by themselves."""

from __future__ import annotations

import logging

import pytest

from penstock.spark.startup.quiet import silence_python


@pytest.mark.parametrize(("place", "heard"), [("/lib/py4j/java_gateway.py", False), ("/lib/mine.py", True)])
def test_py4j_does_not_complain_in_the_root_loggers_name(
    place: str, heard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    root = logging.getLogger()
    before = list(root.filters)
    try:
        silence_python()
        root.handle(root.makeRecord("root", logging.ERROR, place, 1, "Exception while sending command.", (), None))
    finally:
        root.filters[:] = before
    assert bool(caplog.records) == heard
