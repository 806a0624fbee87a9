"""Has Spark load files: the reader's options, and a check that Spark took exactly the files that it was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from penstock.config import formats
from penstock.errors import PenstockError
from penstock.spark.internals.file_index import input_files
from penstock.spark.internals.text_schema import schema_of_texts
from penstock.spark.reading.file_names import path_of_uri
from penstock.spark.reading.groups import FileGroup
from penstock.spark.reading.read_options import ReadOptions
from penstock.spark.reading.rescue import CORRUPT

_SHOWN = 3


class FileLoader:
    """Has Spark load groups of files by the options of one model."""

    def __init__(self, spark: SparkSession, hadoop: Callable[[str], str], options: ReadOptions) -> None:
        """`hadoop` spells a path for Spark."""
        self._spark = spark
        self._hadoop = hadoop
        self._options = options

    def rows(self, group: FileGroup, schema: StructType) -> DataFrame:
        """The rows of a group, read with this schema. No job runs."""
        return self._load(self._reader(group).schema(schema), group)

    def schema(self, group: FileGroup) -> StructType:
        """The schema that Spark infers from the files of a group. Reads the files."""
        return self._load(self._reader(group, infer=True), group).schema

    def texts(self, group: FileGroup, options: Mapping[str, str]) -> DataFrame:
        """The lines of a group as texts (`value`), with the columns of the folders. No job runs."""
        return self._load(self._named(group, self._spark.read.format("text").options(**options)), group)

    def schema_of_texts(self, group: FileGroup, texts: DataFrame) -> StructType:
        """The schema that Spark infers from the texts of a group. Reads the files."""
        return schema_of_texts(texts, self._reader(group, infer=True), self._options.format)

    def _reader(self, group: FileGroup, *, infer: bool = False) -> DataFrameReader:
        given, format = self._options.reader, formats.by_name(self._options.format)
        defaults = {**format.options, **(format.inference if infer else {})}
        if given.get("header", "false") != "true":
            defaults.pop("enforceSchema", None)
        reader = self._spark.read.format(format.name).options(**{**defaults, **given})
        if self._options.rescued_column is not None:
            # A bad record must not fail the inference either.
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
            reader = reader.option("samplingRatio", "1") if infer else reader
        return self._named(group, reader)

    def _named(self, group: FileGroup, reader: DataFrameReader) -> DataFrameReader:
        """A reader that takes the group's paths for names, not for patterns."""
        reader = reader.option("basePath", self._hadoop(group.root)).option("ignoreMissingFiles", "false")
        return reader.option("__globPaths__", "true" if group.is_escaped else "false")

    def _load(self, reader: DataFrameReader, group: FileGroup) -> DataFrame:
        """Give the files to Spark; an error if Spark would read other files.

        This is the only place that gives files to Spark. The check runs no job and lists nothing: the relation has
        listed its files when it was created.
        """
        frame = reader.load(group.paths)
        taken, given = Counter(map(path_of_uri, input_files(frame))), Counter(group.files)
        if taken != given:
            more, less = taken - given, given - taken
            wrong = [f"{_some(more)} more often than asked"] * bool(more) + [f"{_some(less)} not at all"] * bool(less)
            raise PenstockError(
                f"Spark would read other files than it was given: {' and '.join(wrong)}",
                where=group.root,
                fix="Nothing was read or written. Rename the files, and report this as a bug with their names.",
            )
        return frame


def _some(files: Counter[str]) -> str:
    names = sorted(files)
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else "")
