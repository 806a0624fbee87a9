"""The object stores that a lake is about: what Spark must have to work on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.config.hadoop_options import hadoop_settings
from penstock.config.session_settings import SessionSettings
from penstock.config.store_options import kinds, profile_of


@dataclass(frozen=True)
class StoreSettings:
    """The kinds of store of one lake, and Spark's settings for them."""

    kinds: frozenset[str] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    profile: str | None = None
    """The AWS profile, which the JVM takes as a system property."""

    @classmethod
    def of_lake(cls, root: str, options: Mapping[str, str], session: SessionSettings) -> StoreSettings:
        """The stores that a lake's root and its `storage_options` name.

        >>> StoreSettings.of_lake("/data/lake", {}, SessionSettings()).kinds
        frozenset()
        """
        found = hadoop_settings(root, options)
        if session.single_writer:
            found[SINGLE_WRITER] = "true"
        profile = profile_of(options)
        if profile is not None:
            found["spark.executorEnv.AWS_PROFILE"] = profile
        return cls(frozenset(kinds(root, options)), found, profile)


SINGLE_WRITER = "spark.hadoop.fs.penstock.single.writer"
"""Tells `S3Log` that no other process commits."""
NO_STORES = StoreSettings()
