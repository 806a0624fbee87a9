"""The file formats that penstock reads, in one table: extensions, options, and whether a rescued column is possible.

To add a format, add a row here. If pyspark does not have its jar, add the jar to `spark/startup/jars.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Format:
    """A file format of Spark.

    >>> by_name("csv").extensions
    ('csv',)
    """

    name: str
    extensions: tuple[str, ...] = ()
    """The extensions that tell the format; if there are none, the config must name it."""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options of Spark's reader that hold unless `source_options` says otherwise."""
    inference: Mapping[str, str] = field(default_factory=dict, hash=False)
    """More such options, for the inference of the columns."""
    rescued_from: Literal["rows", "records"] | None = None
    """The texts that the rescued column is made from: rows of fields by position, or records of fields by name.

    None if the format can't have a rescued column, because its files declare their own types.
    """
    data_source: str | None = None
    """The class of Spark's data source, if it is in a jar that pyspark does not have. `startup/jars.py` fetches the jar."""
    in_place: bool = True
    """Whether a source or a link can name the format, not only a model that loads files."""

    @property
    def infers_from_texts(self) -> bool:
        """Whether Spark can infer the columns from the lines of the files, read as texts."""
        return self.rescued_from is not None


# A value that does not fit is an error, not a null; a CSV whose header has other names or another order is an error,
# not mixed-up columns.
_ALL = (
    Format("parquet", ("parquet",), inference={"mergeSchema": "true"}),
    Format(
        "csv",
        ("csv",),
        options={"mode": "FAILFAST", "enforceSchema": "false"},
        inference={"inferSchema": "true"},
        rescued_from="rows",
    ),
    Format("json", ("json", "jsonl", "ndjson"), options={"mode": "FAILFAST"}, rescued_from="records"),
    Format("orc", ("orc",), inference={"mergeSchema": "true"}),
    Format("avro", ("avro",), data_source="org.apache.spark.sql.v2.avro.AvroDataSourceV2"),
    Format("text", ("txt", "text", "log")),
    Format("binaryFile", in_place=False),
)
_BY_NAME = {format.name: format for format in _ALL}

FORMATS = tuple(_BY_NAME)
"""The names of all formats."""
IN_PLACE = tuple(format.name for format in _ALL if format.in_place)
"""The names of the formats that can be read in place."""
BY_EXTENSION = {extension: format.name for format in _ALL for extension in format.extensions}
RESCUED = tuple(format.name for format in _ALL if format.rescued_from)
"""The names of the formats that can have a rescued column."""


def by_name(name: str) -> Format:
    """The format of this name; a format without special rules if the name is not in the table."""
    return _BY_NAME.get(name, Format(name))
