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


@pytest.mark.parametrize("key", ["driver_host", "driver_bind_address"])
@pytest.mark.parametrize("master", [None, "local[2]"])
def test_an_address_of_the_driver_without_a_cluster_is_refused(key: str, master: str | None) -> None:
    with pytest.raises(PenstockError, match=f"`session.{key}` has an effect on a cluster only"):
        SessionSettings.from_mapping({key: "10.0.0.1", "master": master})


def test_the_driver_of_a_cluster_has_an_address() -> None:
    given = {"master": "spark://host:7077", "driver_host": "10.0.0.1", "driver_bind_address": "0.0.0.0"}
    settings = SessionSettings.from_mapping(given)
    assert (settings.driver_host, settings.driver_bind_address) == ("10.0.0.1", "0.0.0.0")


@pytest.mark.parametrize(
    ("given", "local"),
    [
        ({}, True),
        ({"master": "local[*]"}, True),
        ({"master": "local-cluster[2,1,1024]"}, False),
        ({"master": "yarn"}, False),
        ({"spark_config": {"spark.master": "k8s://https://host"}}, False),
        ({"master": "spark://host:7077", "spark_config": {"spark.master": "local"}}, True),
    ],
)
def test_whether_spark_is_in_this_process(given: dict[str, object], local: bool) -> None:
    assert SessionSettings.from_mapping(given).is_local is local
