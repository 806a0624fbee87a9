"""The files of a batch as a DataFrame: what `@data` stands for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.config.formats import by_name
from penstock.errors import PenstockError, from_spark
from penstock.spark.internals.class_path import is_loadable
from penstock.spark.query_columns import type_text
from penstock.spark.reading import rescue, virtual_columns
from penstock.spark.reading.file_names import unreadable_names
from penstock.spark.reading.file_schema import FileSchema
from penstock.spark.reading.groups import FileGroup, grouped
from penstock.spark.reading.inference import SchemaInference, file_schema
from penstock.spark.reading.loading import FileLoader
from penstock.spark.reading.read_options import ReadOptions
from penstock.sql.quoting import quote

_NULLS = {name: f"cast(null as {type})" for name, type in virtual_columns.TYPES.items()}


class Frames:
    """Makes DataFrames of explicit files. Every file is read exactly once, or the call fails."""

    def __init__(self, spark: SparkSession, hadoop: Callable[[str], str], options: ReadOptions) -> None:
        """`hadoop` spells a path for Spark; it fails if Spark cannot work on the path's store."""
        self._spark = spark
        self._hadoop = hadoop
        self._options = options
        self._format = by_name(options.format)
        self._loader = FileLoader(spark, hadoop, options)
        self._inference = SchemaInference(self._loader, options)
        if self._format.data_source is not None and not is_loadable(spark, self._format.data_source):
            raise PenstockError(
                f"Spark reads {options.format} files with a separate jar, spark-{options.format}, which is not in "
                "`session.jars`",
                fix="Add it there, or leave `session.jars` out: penstock then fetches it.",
            )

    # Schemas

    def infer(self, paths: list[str], known: FileSchema | None = None) -> FileSchema:
        """The columns of these files, after those of a known schema. Reads the files.

        Known columns keep their types and their order; their structs gain fields.
        """
        _refuse_names(paths)
        found = self._inference.merged(self._grouped(paths), known)
        if not found.names:
            raise PenstockError(
                "No columns were found in the files of the first batch", where=paths[0], fix="Set `source_columns`."
            )
        return found

    def declared(self) -> FileSchema | None:
        """The schema that the user declares; None if the columns are inferred. Nothing is read."""
        columns = [column for column in self._options.declared if column.extract]
        if not columns:
            return None
        ddl = ", ".join(f"{quote(column.name)} {column.type}" for column in columns)
        try:
            return file_schema(cast(StructType, StructType.fromDDL(ddl)))
        except Exception as error:
            raise from_spark(error, ddl) from error

    @staticmethod
    def types(schema: FileSchema) -> dict[str, str]:
        """The SQL type of each column."""
        return {field.name: type_text(field.dataType) for field in _struct(schema).fields}

    # Rows: nothing runs until they are asked for

    def rows(self, paths: list[str], schema: FileSchema, virtual: Sequence[str] = ()) -> DataFrame:
        """The rows of these files, each file once, with these virtual columns."""
        _refuse_names(paths)
        try:
            if not paths:
                return self.empty(schema, virtual)
            parts = [self._part(group, schema, virtual) for group in self._grouped(paths)]
            return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
        except PenstockError:
            raise
        except Exception as error:
            raise from_spark(error) from error

    def empty(
        self, schema: FileSchema, virtual: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
    ) -> DataFrame:
        """The same columns without a row; the virtual columns get this metadata."""
        rescued = self._options.rescued_column
        more = [] if rescued is None else [StructField(rescued, StringType(), True)]
        frame = self._spark.createDataFrame([], StructType([*_struct(schema).fields, *more]))
        return _with_virtual(frame, _NULLS, virtual, metadata)

    def read_through(self, paths: list[str], schema: FileSchema) -> None:
        """Read all rows of these files and keep none; an error if a file cannot be read."""
        self.rows(paths, schema).write.format("noop").mode("overwrite").save()

    @staticmethod
    def with_literal(frame: DataFrame, name: str, text: str, type: str) -> DataFrame:
        """A frame with one more column that has the same value in each row: a text, cast to a type."""
        return frame.withColumn(name, F.lit(text).cast(type))

    @staticmethod
    def as_view(frame: DataFrame) -> str:
        """The name of a new temporary view of a frame. `Backend.drop_view` removes it."""
        name = f"penstock_data_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        return name

    # The parts of a frame

    def _grouped(self, paths: list[str]) -> list[FileGroup]:
        return grouped(paths, self._options.roots, self._hadoop)

    def _part(self, group: FileGroup, schema: FileSchema, virtual: Sequence[str]) -> DataFrame:
        """The rows of a group, with nulls for the folder columns that its folders do not have."""
        struct = _struct(schema)
        absent = {name.lower() for name in schema.folders} - group.folder_names
        present = StructType([field for field in struct.fields if field.name.lower() not in absent])
        missing = [field for field in struct.fields if field.name.lower() in absent]
        rescued = self._options.rescued_column
        frame = self._loader.rows(group, present) if rescued is None else self._rescued(group, present, rescued)
        frame = _with_virtual(frame, virtual_columns.EXPRESSIONS, virtual)
        nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in missing]
        return frame.select("*", *nulls) if nulls else frame

    def _rescued(self, group: FileGroup, schema: StructType, column: str) -> DataFrame:
        """The rows of a group, with the values that do not fit in the rescued column."""
        rescue.check_name(column, [*schema.names, *virtual_columns.TYPES])
        of_folders = [field for field in schema.fields if field.name.lower() in group.folder_names]
        fields = [field for field in schema.fields if field.name.lower() not in group.folder_names]
        of_records = self._format.rescued_from == "records"
        read = rescue.with_unknown(fields, self._inference.of(group)) if of_records else fields
        # A folder's column takes precedence over a field of its name.
        read = [field for field in read if field.name.lower() not in group.folder_names]
        corrupt = StructField(rescue.CORRUPT, StringType(), True)
        frame = self._loader.rows(group, StructType([*read, *of_folders, corrupt]))
        # Spark adds the folders' columns even if the given schema does not have them.
        names = [name for name in frame.columns if name.lower() in group.folder_names]
        if of_records:
            frame = rescue.from_records(frame, fields, read, names, column)
        else:
            frame = rescue.from_rows(frame, fields, names, column, self._options.reader)
        shown = [*schema.names, *(name for name in names if name not in schema.names), column]
        return frame.select(*map(quote, shown))


def _refuse_names(paths: Iterable[str]) -> None:
    for path, reason in unreadable_names(paths).items():
        raise PenstockError(
            f"A file can't be read: {reason}",
            where=path,
            fix="Rename it, exclude it with `source_exclude`, or set `on_bad_file: quarantine`.",
        )


def _struct(schema: FileSchema) -> StructType:
    return StructType.fromJson(schema.struct)


def _with_virtual(
    frame: DataFrame, made: Mapping[str, str], wanted: Sequence[str], metadata: Mapping[str, Any] | None = None
) -> DataFrame:
    """A frame with the virtual columns that are wanted and that the files do not have themselves."""
    there = {name.lower() for name in frame.columns}
    given = {} if metadata is None else {"metadata": dict(metadata)}
    columns = [F.expr(made[name]).alias(name, **given) for name in wanted if name not in there]
    return frame.select("*", *columns) if columns else frame
