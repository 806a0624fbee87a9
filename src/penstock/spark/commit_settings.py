"""Settings that put a mark and a note into the commit of one SQL statement."""

from __future__ import annotations


def on_sql(application: str, number: int, note: str) -> dict[str, str]:
    """The settings that put a mark and a note into the commit of one SQL statement."""
    return {
        "spark.databricks.delta.write.txnAppId": application,
        "spark.databricks.delta.write.txnVersion": str(number),
        **noted(note),
    }


def noted(note: str) -> dict[str, str]:
    """The setting that puts a note into the commit of one SQL statement."""
    return {"spark.databricks.delta.commitInfo.userMetadata": note}
