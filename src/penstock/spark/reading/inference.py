"""The columns of files, inferred by Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.config.formats import by_name
from penstock.errors import PenstockError, from_spark
from penstock.spark.reading.file_names import is_like_a_pattern
from penstock.spark.reading.file_schema import FileSchema
from penstock.spark.reading.groups import FileGroup
from penstock.spark.reading.loading import FileLoader
from penstock.spark.reading.read_options import ReadOptions
from penstock.spark.reading.rescue import CORRUPT


class SchemaInference:
    """Infers the columns of groups of files, each group once."""

    def __init__(self, loader: FileLoader, options: ReadOptions) -> None:
        self._loader = loader
        self._options = options
        self._found: dict[FileGroup, StructType] = {}

    def merged(self, groups: Iterable[FileGroup], known: FileSchema | None) -> FileSchema:
        """The columns of all groups, after those of a known schema.

        Known columns keep their types and their order; their structs gain fields. Reads the files.
        """
        fields = {field.name.lower(): field for field in StructType.fromJson(known.struct).fields} if known else {}
        folders = {name.lower(): name for name in known.folders} if known else {}
        for group in groups:
            try:
                found = self.of(group)
            except PenstockError:
                raise
            except Exception as error:
                raise from_spark(error) from error
            for field in found.fields:
                before = fields.get(field.name.lower(), field)
                type = with_new_fields(before.dataType, field.dataType)
                fields[field.name.lower()] = StructField(before.name, type, True)
            folders |= {name.lower(): name for name in group.folders}
        return file_schema(StructType(list(fields.values())), tuple(folders.values()))

    def of(self, group: FileGroup) -> StructType:
        """The columns of a group. Reads the files on the first call."""
        if group not in self._found:
            by_texts = group.has_patterns and by_name(self._options.format).infers_from_texts
            found = self._from_texts(group) if by_texts else self._loader.schema(group)
            self._found[group] = StructType([field for field in found.fields if field.name != CORRUPT])
        return self._found[group]

    def _from_texts(self, group: FileGroup) -> StructType:
        """The columns of csv and json files whose names look like patterns.

        Spark's inference opens the files by a list of its own, in which such files are several times. So the lines
        are read as texts, and Spark infers the columns of the texts.
        """
        options = self._options
        whole = options.reader_option("multiline", default="false").lower() == "true"
        if (
            not options.is_utf8
            or (whole and by_name(options.format).rescued_from == "rows")
            or "value" in group.folder_names
        ):
            raise PenstockError(
                "Spark can't infer columns with multiLine or an encoding if the file's path has one of [ ] { } * ? \\",
                where=next(path for path in group.files if is_like_a_pattern(path)),
                fix="Declare the columns in `source_columns`, or rename the file.",
            )
        separator = options.reader_option("linesep")
        texts = self._loader.texts(
            group, {"wholetext": "true"} if whole else {"lineSep": separator} if separator else {}
        )
        found = self._loader.schema_of_texts(group, texts.select("value"))
        fields = {field.name.lower(): field for field in found.fields}
        for field in texts.schema.fields[1:]:
            # A folder's column takes precedence over a column of the same name in the files.
            fields[field.name.lower()] = field
        return StructType(list(fields.values()))


def file_schema(struct: StructType, folders: tuple[str, ...] = ()) -> FileSchema:
    # By `json()`, which sorts the keys: plans and ledgers store them in this order.
    return FileSchema(json.loads(struct.json()), folders)


def with_new_fields(known: DataType, found: DataType) -> DataType:
    """A known type whose structs have gained the fields that were found.

    >>> from pyspark.sql.types import LongType, StringType
    >>> known = StructType([StructField("a", LongType())])
    >>> found = StructType([StructField("A", StringType()), StructField("b", StringType())])
    >>> with_new_fields(known, found).simpleString()
    'struct<a:bigint,b:string>'
    """
    if isinstance(known, StructType) and isinstance(found, StructType):
        gained = {field.name.lower(): field for field in found.fields}
        fields = []
        for field in known.fields:
            other = gained.pop(field.name.lower(), field)
            fields.append(StructField(field.name, with_new_fields(field.dataType, other.dataType), True))
        return StructType([*fields, *gained.values()])
    if isinstance(known, ArrayType) and isinstance(found, ArrayType):
        return ArrayType(with_new_fields(known.elementType, found.elementType))
    if isinstance(known, MapType) and isinstance(found, MapType):
        return MapType(known.keyType, with_new_fields(known.valueType, found.valueType))
    return known
