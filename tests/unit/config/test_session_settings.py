from __future__ import annotations

import pytest

from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError


def test_settings_as_a_profile_gives_them() -> None:
    settings = SessionSettings.from_mapping(
        {"memory": "4g", "spark_config": {"spark.sql.ansi.enabled": False, "spark.sql.shuffle.partitions": 8}}
    )
    assert settings.memory == "4g"
    assert settings.spark_config == {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "8"}


def test_every_error_is_in_one_message() -> None:
    with pytest.raises(PenstockError) as caught:
        SessionSettings.from_mapping({"memroy": "4g", "memory": "lots", "jars": "a.jar", "master": "x", "remote": "y"})
    message = str(caught.value)
    for part in ("`session.memroy` is not known: did you mean `memory`?", "'lots'", "`session.jars`", "exclude"):
        assert part in message


@pytest.mark.parametrize("given", ["local", 3, ["master"]])
def test_a_session_that_is_no_block_is_refused(given: object) -> None:
    with pytest.raises(PenstockError, match="block of settings"):
        SessionSettings.from_mapping(given)  # type: ignore[arg-type]
