"""The errors of the engine: each says what happened, where, and what to do next."""

from __future__ import annotations

import re
import sys

from penstock.secrets import redact, scrub


class PenstockError(Exception):
    """An error whose message is for users. Secrets are removed from it and from the errors that caused it.

    >>> str(PenstockError("No such table", where="silver.orders", fix="Check the name."))
    'No such table (silver.orders). Check the name.'
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        what = redact(what)
        where, fix = (None if text is None else redact(text) for text in (where, fix))
        # A traceback also shows the error that is being handled now.
        scrub(sys.exc_info()[1])
        self.what = what
        self.where = where
        self.fix = fix
        message = what if where is None else f"{what.rstrip('.')} ({where})"
        if fix is not None:
            message = f"{message.rstrip('.')}. {fix}"
        super().__init__(message)


class UnreadableTable(PenstockError):
    """A folder has a `_delta_log`, but it can't be read. This never means that there is no table."""


class UnsupportedTable(PenstockError):
    """delta-rs does not support the table's protocol. Spark may still read the table."""


class NotFound(PenstockError):
    """A relation, file or folder does not exist."""


class StatementError(PenstockError):
    """A statement failed in Spark. Holds Spark's error condition and message, without the Java stack trace."""

    def __init__(self, message: str, *, condition: str | None, sql: str | None = None) -> None:
        self.condition = condition
        self.sql = None if sql is None else redact(sql)
        found = _LINE.search(message)
        self.line = int(found.group(1)) if found else None
        """The line of the statement that Spark's message names."""
        super().__init__(message)

    @property
    def is_cancelled(self) -> bool:
        """Whether the statement was cancelled. The statement itself is not wrong."""
        return self.condition == CANCELLED

    @property
    def is_conflict(self) -> bool:
        """Whether another writer committed first. This statement committed nothing; read the log to continue."""
        return (self.condition or "").startswith(_CONFLICTS)

    @property
    def may_run_again(self) -> bool:
        """Whether the same statement may run again on the new state.

        False after a conflict about a transaction mark: Delta would see the second attempt as a repeat and skip it.
        """
        return self.is_conflict and not (self.condition or "").startswith(_CONFLICT_OF_MARKS)


class CommitConflict(Exception):
    """Another writer committed first. This commit was not made; read the log to continue."""


CANCELLED = "SPARK_JOB_CANCELLED"
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_CONFLICT_OF_MARKS = "DELTA_CONCURRENT_TRANSACTION"
_JAVA_FRAME = re.compile(r"^\s+at \S+|^\s*\.\.\. \d+ more$|^Driver stacktrace:$")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_JAVA_CLASS = re.compile(r"^(?:: )?(?:[a-z][\w$]*\.)+[A-Z][\w$.]*(?:Exception|Error)\w*: ?")
# Spark appends its logical plan to some messages.
_PLAN_FOLLOWS = re.compile(r"(?:line \d+ pos \d+|SQLSTATE: \w{5});$")
# Spark has no text for this condition of Delta, and reports an internal error instead.
_UNRESOLVED_IN_MERGE = re.compile(
    r"\[INTERNAL_ERROR\] Cannot find main error class '(DELTA_MERGE_UNRESOLVED_EXPRESSION)'.*"
)
_LINE = re.compile(r"\(?\bline (\d+)(?:, pos(?:ition)?:? \d+)?")
# Python workers of a cluster. PySpark names variables that have no effect in a process that runs already.
_OTHER_PYTHON = re.compile(r"Python in worker has different version: (\S+?) than that in driver: (\S+?),")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)": (?:Exec failed, )?error[=:] ?\d+')
# The stage, task and executor of a failed task do not help the author of the SQL.
_TASK_HEAD = re.compile(r"Job aborted due to stage failure: .*?: (?=(?:[a-z][\w$]*\.)+[A-Z])", re.DOTALL)


def condition_of(error: BaseException) -> str | None:
    """The error condition of Spark or Delta, e.g. DELTA_CONCURRENT_APPEND; None if the error has none."""
    get = getattr(error, "getCondition", None)
    condition = get() if callable(get) else None
    if condition is None:
        found = _CONDITION.search(_plain(error))
        condition = found.group(1) if found else None
    return condition


def from_spark(error: BaseException, sql: str | None = None) -> StatementError:
    """Spark's error as a StatementError: its condition, its text, and the SQL line that it names."""
    text = _plain(error)
    if (python := _python_problem(str(error))) is not None:
        return StatementError(python, condition="PYTHON_VERSION_MISMATCH", sql=sql)
    condition = condition_of(error)
    if condition == "TASK_WRITE_FAILED" and (cause := _cause(error)) is not None:
        # The cause names the file or the value; the message about the task does not.
        text, found = cause, _CONDITION.search(cause)
        condition = found.group(1) if found else condition
    if "== SQL" not in text and sql is not None and (found := _LINE.search(text)):
        lines = sql.splitlines()
        number = int(found.group(1))
        if 0 < number <= len(lines):
            text = f"{text}\n  line {number}: {lines[number - 1].strip()}"
    return StatementError(text, condition=condition, sql=sql)


def _python_problem(text: str) -> str | None:
    """What to do if an executor has no Python like this one; None for other errors."""
    ours = ".".join(map(str, sys.version_info[:2]))
    if found := _OTHER_PYTHON.search(text):
        theirs = found.group(1)
        return (
            f"The executors run Python {theirs}, and dbt runs Python {found.group(2)}: Python models and functions need "
            f"the same version on both. Set `spark.pyspark.python` in `session.spark_config`, or PYSPARK_PYTHON, to a "
            f"Python {ours} that each executor has, or run dbt with Python {theirs}."
        )
    if (found := _NO_PYTHON.search(text)) and "python" in found.group(1).lower():
        return (
            f"An executor has no Python at {found.group(1)}: Python models and functions run there. Set "
            f"`spark.pyspark.python` in `session.spark_config`, or PYSPARK_PYTHON, to the path of a Python {ours} with "
            "pandas and pyarrow on the executors' machines."
        )
    return None


def _cause(error: BaseException) -> str | None:
    """The messages of the two errors that made a task fail, outer one first; None if Java names no cause."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    messages: list[str] = []
    while java is not None:
        text = str(java.getMessage())
        heads = [text.splitlines()[0]] if text.startswith("[") else []
        # Spark sends a task's exception as text: its causes are lines of the stack trace.
        heads += [line for line in text.splitlines() if line.startswith("Caused by: ")]
        messages += [_JAVA_CLASS.sub("", head.removeprefix("Caused by: ")) for head in heads]
        java = java.getCause()
    kept = [text for text in dict.fromkeys(messages) if not text.startswith("[TASK_WRITE_FAILED]")]
    return ": ".join(kept[:2]) or None


def _plain(error: BaseException) -> str:
    """The error's message without Java's class names and stack frames."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    text = _TASK_HEAD.sub("", text)
    text = _UNRESOLVED_IN_MERGE.sub(
        r"[\1] The MERGE names a column that neither the table nor the query has. "
        "Look for a mistyped name in its keys, predicates and conditions",
        text,
    )
    kept: list[str] = []
    for line in text.splitlines():
        if _JAVA_FRAME.match(line) or line.startswith(("Caused by:", "JVM stacktrace:")):
            if kept:
                break
            continue
        kept.append(_JAVA_CLASS.sub("", line))
        if _PLAN_FOLLOWS.search(line):
            break
    return "\n".join(kept).strip() or type(error).__name__
