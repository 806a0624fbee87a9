"""The keys of the profile."""

from __future__ import annotations

from penstock.config import values
from penstock.config.key import Key

PROFILE = (
    Key(
        "root",
        "The lake's folder: a path, a `file://` URI, or the URI of an object store. A relative path starts at the "
        "project.",
        values.path,
        (),
        unset="required",
    ),
    Key("schema", "The schema of the models. A schema is a folder of the lake.", values.text, (), unset="required"),
    Key(
        "threads",
        "dbt's threads. Each thread has its own Spark session in one JVM.",
        values.positive,
        (),
        default=1,
    ),
    Key(
        "session.master",
        "A Spark master: this process (`local[*]`, `local[4]`) or a cluster (`spark://host:7077`, `yarn`, `k8s://…`). "
        "[deploy.md](deploy.md) has a profile for each.",
        values.text,
        (),
        default="local[*]",
    ),
    Key("session.remote", "A Spark Connect server. Not supported yet: it is an error.", values.text, ()),
    Key(
        "session.driver_host",
        "On a cluster: the name or address at which the executors reach this machine.",
        values.text,
        (),
        unset="the address that Spark finds",
    ),
    Key(
        "session.driver_bind_address",
        "On a cluster: the address of this machine that the driver listens at, e.g. `0.0.0.0` in a container.",
        values.text,
        (),
        unset="`session.driver_host`",
    ),
    Key(
        "session.spark_home",
        "The folder of an existing installation of Spark, of the same version as `pyspark`.",
        values.path,
        (),
        unset="SPARK_HOME, else the Spark that pip installed",
    ),
    Key(
        "session.fast_start",
        "Whether Spark starts with penstock's shortcuts ([performance.md](performance.md#starting-spark)); `false` "
        "starts it as Spark's own script does.",
        values.flag,
        (),
        default=True,
    ),
    Key(
        "session.single_writer",
        "Whether one process at a time writes to the lake. Then an S3 without conditional writes will do, which is an "
        "error otherwise: two writers would lose commits.",
        values.flag,
        (),
        default=False,
    ),
    Key(
        "session.memory",
        "The heap of the Spark driver, e.g. `4g`.",
        values.memory,
        (),
        unset="half of the memory that the process may use, control groups included",
    ),
    Key("session.spark_config", "Spark settings. They win over penstock's own.", values.block, (), default={}),
    Key(
        "session.jars",
        "The jars that Spark starts with. With this key, penstock downloads none.",
        values.strings,
        (),
        unset="Delta's jars and Spark's jar for Avro, downloaded once",
    ),
    Key(
        "session.repositories",
        "Maven repositories to try first: addresses, or blocks with `url`, `user` and `password`.",
        values.several,
        (),
        unset="Maven Central",
    ),
    Key(
        "storage_options",
        "Credentials of the object store and settings of its HTTP client (`allow_http: true`, `timeout: 30`), with the "
        "keys of obstore and delta-rs. They are never shown in logs, in SQL or in `dbt debug`.",
        values.block,
        (),
        default={},
    ),
)
