"""The Python that Spark's workers run."""

from __future__ import annotations

import os
import sys

from penstock.config.session_settings import SessionSettings

_SETTING, _VARIABLE = "spark.pyspark.python", "PYSPARK_PYTHON"


def choose_python(settings: SessionSettings) -> None:
    """Have PySpark ask for the Python of the profile, else of PYSPARK_PYTHON, else for this one.

    PySpark reads the variable alone: spark-submit would set it from the setting, but only for a Python that it starts.
    Without either it would take the first `python3` in the path. Executors without a Python at the path of this one, or
    with another version there, fail with an error that says what to set (`errors.py`).
    """
    if given := settings.spark_config.get(_SETTING):
        os.environ[_VARIABLE] = given
    else:
        os.environ.setdefault(_VARIABLE, sys.executable)
