"""One error class: what happened, where, and what to do next."""

from __future__ import annotations

import re
import sys

from penstock.secrets import redact, scrub


class PenstockError(Exception):
    """An error for people, without secrets: nor are there any in the errors that it comes from.

    >>> str(PenstockError("No such table", where="silver.orders", fix="Check the name."))
    'No such table (silver.orders). Check the name.'
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        what = redact(what)
        where, fix = (None if text is None else redact(text) for text in (where, fix))
        # It is raised from the error that is handled now, and a traceback shows both.
        scrub(sys.exc_info()[1])
        self.what = what
        self.where = where
        self.fix = fix
        message = what if where is None else f"{what.rstrip('.')} ({where})"
        if fix is not None:
            message = f"{message.rstrip('.')}. {fix}"
        super().__init__(message)


class UnreadableTable(PenstockError):
    """A folder with a `_delta_log` that can't be read: never the same as no table."""


class UnsupportedTable(PenstockError):
    """A table whose protocol delta-rs does not know; Spark may still read it."""


class NotFound(PenstockError):
    """A relation, file or folder that is not there."""


class StatementError(PenstockError):
    """Spark refused or failed a statement: its condition, its message, no Java stack."""

    def __init__(self, message: str, *, condition: str | None, sql: str | None = None) -> None:
        self.condition = condition
        self.sql = None if sql is None else redact(sql)
        found = _LINE.search(message)
        self.line = int(found.group(1)) if found else None
        """The line of the statement that Spark points to."""
        super().__init__(message)

    @property
    def is_cancelled(self) -> bool:
        """Whether the statement was told to stop: nothing is wrong with it."""
        return self.condition == CANCELLED

    @property
    def is_conflict(self) -> bool:
        """Whether another writer committed first. Nothing was committed, and the log says where to continue."""
        return (self.condition or "").startswith(_CONFLICTS)

    @property
    def may_run_again(self) -> bool:
        """Whether the same statement may run again on the new state.

        Not after a conflict about a transaction mark: Delta would take the second attempt for a repeat and skip it.
        """
        return self.is_conflict and not (self.condition or "").startswith(_CONFLICT_OF_MARKS)


class CommitConflict(Exception):
    """Another writer committed first: nothing was committed, and the log says where to continue."""


CANCELLED = "SPARK_JOB_CANCELLED"
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_CONFLICT_OF_MARKS = "DELTA_CONCURRENT_TRANSACTION"
_JAVA_FRAME = re.compile(r"^\s+at \S+|^\s*\.\.\. \d+ more$|^Driver stacktrace:$")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_JAVA_CLASS = re.compile(r"^(?:: )?(?:[a-z][\w$]*\.)+[A-Z][\w$.]*(?:Exception|Error)\w*: ?")
# Spark ends some messages with its logical plan.
_PLAN_FOLLOWS = re.compile(r"(?:line \d+ pos \d+|SQLSTATE: \w{5});$")
# Spark has no text for this condition of Delta's, and puts an internal error in its place.
_UNRESOLVED_IN_MERGE = re.compile(
    r"\[INTERNAL_ERROR\] Cannot find main error class '(DELTA_MERGE_UNRESOLVED_EXPRESSION)'.*"
)
_LINE = re.compile(r"\(?\bline (\d+)(?:, pos(?:ition)?:? \d+)?")
# The head of a failed task: which stage, task and executor it was says nothing to the author of the SQL.
_TASK_HEAD = re.compile(r"Job aborted due to stage failure: .*?: (?=(?:[a-z][\w$]*\.)+[A-Z])", re.DOTALL)


def condition_of(error: BaseException) -> str | None:
    """The error condition that Spark or Delta gave, e.g. DELTA_CONCURRENT_APPEND."""
    get = getattr(error, "getCondition", None)
    condition = get() if callable(get) else None
    if condition is None:
        found = _CONDITION.search(_plain(error))
        condition = found.group(1) if found else None
    return condition


def from_spark(error: BaseException, sql: str | None = None) -> StatementError:
    """Spark's error as one message: condition, text, and the SQL line it points to."""
    text = _plain(error)
    condition = condition_of(error)
    if condition == "TASK_WRITE_FAILED" and (cause := _cause(error)) is not None:
        # That a task failed says nothing; why it did names the file or the value.
        text, found = cause, _CONDITION.search(cause)
        condition = found.group(1) if found else condition
    if "== SQL" not in text and sql is not None and (found := _LINE.search(text)):
        lines = sql.splitlines()
        number = int(found.group(1))
        if 0 < number <= len(lines):
            text = f"{text}\n  line {number}: {lines[number - 1].strip()}"
    return StatementError(text, condition=condition, sql=sql)


def _cause(error: BaseException) -> str | None:
    """What made a task fail, with what made that fail, in their own words."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    said: list[str] = []
    while java is not None:
        text = str(java.getMessage())
        heads = [text.splitlines()[0]] if text.startswith("[") else []
        # A task's exception comes as text, its causes in the lines of its stack.
        heads += [line for line in text.splitlines() if line.startswith("Caused by: ")]
        said += [_JAVA_CLASS.sub("", head.removeprefix("Caused by: ")) for head in heads]
        java = java.getCause()
    kept = [text for text in dict.fromkeys(said) if not text.startswith("[TASK_WRITE_FAILED]")]
    return ": ".join(kept[:2]) or None


def _plain(error: BaseException) -> str:
    """The message without Java's class names and frames."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    text = _TASK_HEAD.sub("", text)
    text = _UNRESOLVED_IN_MERGE.sub(
        r"[\1] The MERGE names a column that neither the table nor the query has: "
        "look for a mistyped name in its keys, predicates and conditions",
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
