"""PySpark's converters of numpy values, without an import of numpy's tests and pandas at each start.

To ask whether an argument for Java is a numpy array, PySpark imports both, which takes a second.
"""

from __future__ import annotations

from typing import Any


class IfNumpy:
    """A converter of numpy values for Java, which looks at the type of a value before it asks numpy."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def can_convert(self, value: Any) -> bool:
        ours = any(kind.__module__.partition(".")[0] == "numpy" for kind in type(value).__mro__)
        return ours and self._converter.can_convert(value)

    def convert(self, value: Any, client: Any) -> Any:
        return self._converter.convert(value, client)


def spare_numpy() -> None:
    """Put the check before PySpark's converters; nothing happens in a PySpark that has none."""
    try:
        from py4j.protocol import INPUT_CONVERTER
        from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
    except ImportError:
        return
    for index, converter in enumerate(INPUT_CONVERTER):
        if isinstance(converter, (NumpyArrayConverter, NumpyScalarConverter)):
            INPUT_CONVERTER[index] = IfNumpy(converter)
