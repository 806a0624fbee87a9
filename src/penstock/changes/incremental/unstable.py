"""Parts of a model's SQL that are not deterministic: they are rejected before Spark starts.

Spark's analyzed plan has the last word on functions. A date such as `date 'today'` is seen only here, because Spark's
parser turns it into a constant.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import PenstockError

_LIMITS: dict[type[exp.Expr], str] = {
    exp.Limit: "LIMIT",
    exp.Fetch: "FETCH",
    exp.Offset: "OFFSET",
    exp.TableSample: "TABLESAMPLE",
}
_FUNCTIONS = {
    "RAND", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE", "MONOTONICALLY_INCREASING_ID",
    "SPARK_PARTITION_ID", "INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH",
    "CURRENT_TIMESTAMP", "NOW", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "LOCALTIMESTAMP", "CURRENT_USER", "USER",
    "SESSION_USER", "CURRENT_TIMEZONE", "CURRENT_DATABASE", "CURRENT_SCHEMA", "CURRENT_CATALOG", "REFLECT",
    "JAVA_METHOD",
}  # fmt: skip
_NODES = tuple(
    getattr(exp, name)
    for name in (
        "Rand", "Randn", "Randstr", "Uuid", "MonotonicallyIncreasingId", "CurrentTimestamp", "CurrentTimestampLTZ",
        "CurrentDate", "CurrentDatetime", "CurrentTime", "Localtimestamp", "CurrentUser", "SessionUser",
        "CurrentSchema", "CurrentDatabase", "CurrentCatalog", "CurrentTimezone", "Shuffle",
    )
    if hasattr(exp, name)
)  # fmt: skip
_DATES = {"now", "today", "tomorrow", "yesterday"}


def refuse_unstable(tree: exp.Expr, where: str) -> None:
    """An error if the model has a limit, or a call or a date that is not deterministic."""
    for node in tree.walk():
        if limit := next((word for kind, word in _LIMITS.items() if isinstance(node, kind)), None):
            raise PenstockError(
                f"The model has {limit}: the rows that it keeps depend on all other rows, so changes cannot be followed",
                where=where,
                fix="Leave it out, or use `materialized: table`.",
            )
        if unstable := _unstable(node):
            raise PenstockError(
                f"The model is not deterministic, because it has {unstable}: a full refresh and an incremental run would "
                "give different rows",
                where=where,
                fix="Compute it in an upstream model, or use `incremental_strategy: merge`.",
            )


def _unstable(node: exp.Expr) -> str | None:
    """The text of a node that is not deterministic; None for every other node."""
    if isinstance(node, (exp.Cast, exp.TsOrDsToDate)) and isinstance(node.this, exp.Literal):
        return f"'{node.this.name}'" if node.this.name.strip().lower() in _DATES else None
    name = node.name if isinstance(node, exp.Anonymous) else ""
    without_time = isinstance(node, (exp.UnixSeconds, exp.StrToUnix)) and node.this is None
    if not (isinstance(node, _NODES) or name.upper() in _FUNCTIONS or without_time):
        return None
    return f"{name or node.sql_name()}()".lower() if isinstance(node, exp.Func) else node.sql("spark")
