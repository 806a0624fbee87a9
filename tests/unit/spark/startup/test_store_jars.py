"""Which jars a store needs, and when none are fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.config.session_settings import SessionSettings
from penstock.config.store_options import AZURE, GOOGLE, S3
from penstock.spark.startup import store_jars as module
from penstock.spark.startup.jars import JarSet
from penstock.spark.startup.store_jars import jar_set, store_jars

PLAIN = SessionSettings()


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark's folder, and a fetch that names the set."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.5.0.jar").touch()

    def fetched(jars: JarSet, *_: object) -> list[str]:
        return [jars.folder]

    monkeypatch.setattr(module, "fetched", fetched)
    return tmp_path


def test_each_store_has_its_own(spark_home: Path) -> None:
    assert store_jars(PLAIN, [], str(spark_home), "java") == []
    assert store_jars(PLAIN, [S3], str(spark_home), "java") == ["hadoop-aws-3.5.0"]
    assert store_jars(PLAIN, [S3, GOOGLE], str(spark_home), "java") == ["hadoop-gcp-3.5.0", "hadoop-aws-3.5.0"]


@pytest.mark.parametrize(
    "given",
    [
        {"jars": ["/delta.jar"]},
        {"spark_config": {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"}},
        {"spark_config": {"spark.jars": "/hadoop-aws.jar"}},
    ],
)
def test_none_for_a_user_who_brings_jars(spark_home: Path, given: dict[str, object]) -> None:
    assert store_jars(SessionSettings.from_mapping(given), [S3], str(spark_home), "java") == []


def test_none_where_spark_has_them(spark_home: Path) -> None:
    (spark_home / "jars" / "hadoop-aws-3.4.2.jar").touch()
    assert store_jars(PLAIN, [S3], str(spark_home), "java") == []
    assert store_jars(PLAIN, [AZURE], str(spark_home), "java") == ["hadoop-azure-3.5.0"]


def test_none_for_another_hadoop(spark_home: Path) -> None:
    """Hadoop's modules work with their own version alone."""
    (spark_home / "jars" / "hadoop-client-api-3.5.0.jar").rename(spark_home / "jars" / "hadoop-client-api-3.4.2.jar")
    assert store_jars(PLAIN, [S3], str(spark_home), "java") == []


@pytest.mark.parametrize("store", [S3, AZURE, GOOGLE])
def test_each_jar_has_a_checksum(store: str) -> None:
    jars = jar_set(store)
    assert sorted(jars.names) == sorted(jars.sums)
    assert all(len(checksum) == 64 for checksum in jars.sums.values())
