from __future__ import annotations

import pytest

from penstock.errors import PenstockError, condition_of, from_spark


class FromJava(Exception):
    """As py4j raises what pyspark does not know."""

    class java_exception:
        @staticmethod
        def toString() -> str:
            return (
                "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
                "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint positive (id > 0) violated\n - id : -5\n"
                "\tat org.apache.spark.sql.delta.schema.X.y(X.scala:78)\n\t... 12 more\n"
            )


def test_java_leaves_no_trace() -> None:
    error = from_spark(FromJava())
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert str(error) == (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint positive (id > 0) violated\n - id : -5"
    )


def test_the_head_of_a_failed_task_is_left_out() -> None:
    text = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
        "Lost task 0.0 in stage 1.0 (TID 1) (vm executor driver): org.apache.spark.SparkRuntimeException: "
        "[CAST_INVALID_INPUT] The value 'x' is no number\n\tat a.B.c(B.java:1)\nDriver stacktrace:"
    )
    assert str(from_spark(Exception(text))) == "[CAST_INVALID_INPUT] The value 'x' is no number"


def test_the_line_that_spark_points_to_is_shown() -> None:
    error = from_spark(
        Exception("[UNRESOLVED_COLUMN] no column `b`; line 2 pos 7;\n'Project ['b]\n+- Relation"), "select\n  b\nfrom t"
    )
    assert str(error) == "[UNRESOLVED_COLUMN] no column `b`; line 2 pos 7;\n  line 2: b"
    assert error.line == 2


def test_a_plan_that_follows_is_left_out() -> None:
    text = "[NOT_SUPPORTED] No column `ID`. SQLSTATE: 0A000;\n'CreateTableAsSelect [id#1]\n+- Project"
    assert str(from_spark(Exception(text))) == "[NOT_SUPPORTED] No column `ID`. SQLSTATE: 0A000;"


def test_a_column_that_a_merge_does_not_find_is_no_internal_error() -> None:
    text = "[INTERNAL_ERROR] Cannot find main error class 'DELTA_MERGE_UNRESOLVED_EXPRESSION' SQLSTATE: XX000"
    error = from_spark(Exception(text))
    assert error.condition == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    assert str(error).startswith("[DELTA_MERGE_UNRESOLVED_EXPRESSION] The MERGE names a column that neither")


@pytest.mark.parametrize(
    ("text", "condition"), [("[DELTA_CONCURRENT_APPEND.X] y", "DELTA_CONCURRENT_APPEND.X"), ("a [b] c", None)]
)
def test_conditions_are_found_in_messages(text: str, condition: str | None) -> None:
    assert condition_of(Exception(text)) == condition


def test_what_where_and_what_to_do() -> None:
    assert str(PenstockError("It broke.", where="here", fix="Mend it.")) == "It broke (here). Mend it."


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
        "1.0 (TID 4) (10.0.0.2 executor 1): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.8 than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
        "Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.",
    ],
)
def test_executors_with_another_python(text: str) -> None:
    told = str(from_spark(Exception(text)))
    assert told.startswith("The executors run Python 3.8, and dbt runs Python 3.11: ")
    assert "`spark.pyspark.python` in `session.spark_config`, or PYSPARK_PYTHON" in told
    assert told.endswith("or run dbt with Python 3.8.")


@pytest.mark.parametrize(
    "reason", ["error=2, No such file or directory", "Exec failed, error: 2 (No such file or directory)"]
)
def test_executors_without_a_python(reason: str) -> None:
    text = f'Lost task 0.0: java.io.IOException: Cannot run program "/home/ada/.venv/bin/python3": {reason}'
    told = str(from_spark(Exception(text)))
    assert told.startswith("An executor has no Python at /home/ada/.venv/bin/python3: ")
    assert "`spark.pyspark.python`" in told
    assert "no Python" not in str(from_spark(Exception(text.replace("/python3", "/sort"))))
