"""Python models. They run in this process, on the session of the model's connection."""

from __future__ import annotations

import linecache
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from penstock.errors import PenstockError, from_spark
from penstock.secrets import redact, scrub
from penstock.spark import session
from penstock.spark.runner import Runner
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def query(runner: Runner, model: Mapping[str, Any], compiled_code: str) -> str:
    """Run the model, and return the query that reads its DataFrame from a temporary view."""
    filename = f"<{model['path']}>"
    linecache.cache[filename] = (len(compiled_code), None, compiled_code.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "dbt_python_model", "spark": runner.spark}
    try:
        exec(compile(compiled_code, filename, "exec"), scope)
        dbt = scope["dbtObj"](lambda name: runner.run(f"select * from {name}").frame)
        frame = _as_spark(runner, scope["model"](dbt, runner.spark), model["name"])
    except (PenstockError, DbtRuntimeError):
        raise
    except Exception as error:
        if type(error).__module__.startswith(("pyspark", "py4j")):
            raise from_spark(error) from error
        line = _line_of(error, filename)
        where = f", line {line}" if line else ""
        scrub(error)
        raise DbtRuntimeError(redact(f"Python model failed{where}: {type(error).__name__}: {error}")) from error
    finally:
        # The model may have changed settings of the session, and other models run in it.
        session.pin(runner.spark)
    view = f"{model['alias']}__dbt_py_{uuid.uuid4().hex[:8]}"
    runner.adopt(frame).createOrReplaceTempView(quote(view))
    return f"select * from {quote(view)}"


def _as_spark(runner: Runner, frame: Any, name: str) -> DataFrame:
    import pandas
    from pyspark.sql import DataFrame

    if isinstance(frame, DataFrame):
        return frame
    if isinstance(frame, pandas.DataFrame):
        return runner.spark.createDataFrame(frame)
    if hasattr(frame, "to_spark"):  # pandas on Spark
        converted: DataFrame = frame.to_spark()
        return converted
    raise DbtRuntimeError(
        f"The Python model {name} returned {type(frame).__name__}: return a PySpark or pandas DataFrame"
    )


def _line_of(error: BaseException, filename: str) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
