"""The files of a batch as a Spark DataFrame: what `@data` stands for."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from penstock.errors import PenstockError, from_spark
from penstock.files.config import FileSource
from penstock.files.query import VIRTUAL
from penstock.files.reading import rescue
from penstock.spark.internals.jvm import java_class
from penstock.spark.schema import type_text
from penstock.sql.quoting import quote
from penstock.storage import is_uri

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

    from penstock.spark.backend import Backend, DataFrame, DataFrameReader

_EXTENSIONS = {
    "parquet": "parquet",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "orc": "orc",
    "avro": "avro",
    "txt": "text",
    "text": "text",
    "log": "text",
}
_COMPRESSED = {"gz", "bz2", "zst", "snappy", "lz4", "deflate", "gzip"}
_FOLDER_COLUMN = re.compile(r"([^/=]+)=[^/]*")
# How files are inferred and read unless `source_options` says otherwise. A value that does not fit is an error, not
# a null; a CSV whose header has other names or another order is an error, not columns mixed up.
_DEFAULTS: dict[str, dict[str, str]] = {
    "csv": {"mode": "FAILFAST", "enforceSchema": "false", "inferSchema": "true"},
    "json": {"mode": "FAILFAST"},
    "parquet": {"mergeSchema": "true"},
    "orc": {"mergeSchema": "true"},
}
VIRTUAL_TYPES = dict(zip(VIRTUAL, ("string", "bigint", "timestamp", "timestamp")))
_EMPTY_VIRTUAL = {name: f"cast(null as {kind})" for name, kind in VIRTUAL_TYPES.items()}
_INFERENCE_ONLY = ("inferSchema", "mergeSchema")
# Spark takes a path with one of these for a pattern. Told that it is none, it reads every path of the list once more
# for each such path, so these are escaped.
_PATTERN = re.compile(r"[\[\]{}*?\\]")
# Which files are read is told by the plan alone: such an option would leave some out, or find others.
_CHOOSING = frozenset(
    (
        "path",
        "paths",
        "basepath",
        "pathglobfilter",
        "modifiedbefore",
        "modifiedafter",
        "ignoremissingfiles",
        "__globpaths__",
    )
)
_UTF8 = ("utf-8", "utf8")
_SHOWN = 3
_COLON = "its name has a colon, which Hadoop's file system on disk can't open"


def format_of(paths: Iterable[str], source: FileSource) -> str:
    """The one format of these files."""
    if source.source_format is not None:
        return source.source_format
    seen: dict[str, str] = {}
    for path in paths:
        kind = extension_format(path)
        if kind is None:
            raise PenstockError(
                "The format of this file can't be told from its extension", where=path, fix="Set `source_format`."
            )
        seen.setdefault(kind, path)
        if len(seen) > 1:
            one, other = seen.values()
            raise PenstockError(
                f"The files have more than one format: {one} and {other}",
                fix="Set `source_format`, or narrow `source_patterns`.",
            )
    return next(iter(seen), "parquet")


def extension_format(path: str) -> str | None:
    """
    >>> extension_format("/landing/a.JSON.gz"), extension_format("/landing/a.bin")
    ('json', None)
    """
    parts = path.rsplit("/", 1)[-1].lower().split(".")[1:]
    while parts and parts[-1] in _COMPRESSED:
        parts.pop()
    return _EXTENSIONS.get(parts[-1]) if parts else None


@dataclass(frozen=True)
class Shape:
    """What files are read as."""

    schema: dict[str, Any]
    """Spark's JSON of a struct."""
    folders: tuple[str, ...] = ()
    """The columns that come from folder names."""

    @property
    def types(self) -> dict[str, str]:
        return {field.name: type_text(field.dataType) for field in _struct(self.schema).fields}


class Frames:
    """Makes DataFrames of explicit files."""

    def __init__(self, runner: Backend, source: FileSource, format: str, roots: Sequence[str] = ()) -> None:
        if chosen := [key for key in source.source_options if key.lower() in _CHOOSING]:
            raise PenstockError(
                f"`source_options` can't choose files, as {', '.join(chosen)} would: files left out by Spark would "
                "count as ingested",
                fix="Use `source_patterns`, `source_exclude` or `starting_timestamp`.",
            )
        rescue.check_format(source.rescued_data_column, format)
        rescue.check_encoding(source.rescued_data_column, format, source.source_options)
        self._spark = runner.spark
        self._hadoop = runner.place
        self._source = source
        self._format = format
        self._found: dict[_Group, StructType] = {}
        # The longest first: a file below two roots belongs to the nearer.
        self._roots = sorted(roots or source.source_roots, key=len, reverse=True)
        if format == "avro":
            self._check_avro()

    def _check_avro(self) -> None:
        utils = java_class(self._spark, "org.apache.spark.util.Utils")
        if not utils.classIsLoadable("org.apache.spark.sql.v2.avro.AvroDataSourceV2"):
            raise PenstockError(
                "Spark reads Avro files by a jar of its own, spark-avro, which is not among `session.jars`",
                fix="Name it there as well, or leave `session.jars` out to have it fetched.",
            )

    def infer(self, paths: list[str], known: Shape | None = None) -> Shape:
        """The columns of these files; those of a known shape keep their type and place, and their structs gain fields."""
        from pyspark.sql.types import StructField, StructType

        fields = {field.name.lower(): field for field in _struct(known.schema).fields} if known else {}
        folders = {name.lower(): name for name in known.folders} if known else {}
        self._refuse_names(paths)
        for group in self._groups(paths):
            try:
                found = self._inferred(group)
            except PenstockError:
                raise
            except Exception as error:
                raise from_spark(error) from error
            for field in found.fields:
                before = fields.get(field.name.lower(), field)
                type = _with_new_fields(before.dataType, field.dataType)
                fields[field.name.lower()] = StructField(before.name, type, True)
            folders |= {name.lower(): name for name in group.folders}
        if not fields:
            raise PenstockError(
                "The files of the first batch show no columns", where=paths[0], fix="Set `source_columns`."
            )
        return Shape(json.loads(StructType(list(fields.values())).json()), tuple(folders.values()))

    def given(self) -> Shape | None:
        """The shape that `source_columns` declares."""
        from pyspark.sql.types import StructType

        columns = [column for column in self._source.source_columns if column.extract]
        if not columns:
            return None
        ddl = ", ".join(f"{quote(column.name)} {column.type}" for column in columns)
        try:
            schema = StructType.fromDDL(ddl)
        except Exception as error:
            raise from_spark(error, ddl) from error
        return Shape(json.loads(schema.json()))

    def frame(self, paths: list[str], shape: Shape, virtual: Sequence[str] = ()) -> DataFrame:
        """The rows of these files, each file once, and the virtual columns that are wanted."""
        schema = _struct(shape.schema)
        self._refuse_names(paths)
        try:
            if not paths:
                return self.empty(shape, virtual)
            parts = []
            for group in self._groups(paths):
                absent = {name.lower() for name in shape.folders} - {name.lower() for name in group.folders}
                part = self._read(group, _leave_out(schema, absent), virtual)
                parts.append(_with_nulls(part, [field for field in schema.fields if field.name.lower() in absent]))
            return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
        except PenstockError:
            raise
        except Exception as error:
            raise from_spark(error) from error

    def empty(self, shape: Shape, virtual: Sequence[str] = (), metadata: dict[str, Any] | None = None) -> DataFrame:
        """The columns without a row; those that are virtual have this metadata."""
        from pyspark.sql.types import StringType, StructField, StructType

        rescued = self._source.rescued_data_column
        more = [] if rescued is None else [StructField(rescued, StringType(), True)]
        frame = self._spark.createDataFrame([], StructType([*_struct(shape.schema).fields, *more]))
        return self._with_virtual(frame, _EMPTY_VIRTUAL, virtual, metadata)

    @staticmethod
    def unreadable_names(paths: Iterable[str]) -> dict[str, str]:
        """The files that no Spark can open by their name, each with its reason."""
        return {path: _COLON for path in paths if not is_uri(path) and ":" in path.rsplit("/", 1)[-1]}

    def _refuse_names(self, paths: Iterable[str]) -> None:
        for path, reason in self.unreadable_names(paths).items():
            raise PenstockError(
                f"A file can't be read: {reason}",
                where=path,
                fix="Rename it, leave it out by `source_exclude`, or set `on_bad_file: quarantine`.",
            )

    def _load(self, reader: DataFrameReader, group: _Group) -> DataFrame:
        """Give Spark its files. The one place that does, so that which files it took is looked at here.

        No job runs, and nothing is listed again: the relation has listed its files when it was made.
        """
        frame = reader.load(group.paths)
        taken = Counter(_path_of(uri) for uri in self._input_files(frame))
        asked = Counter(group.files)
        if taken != asked:
            more, less = taken - asked, asked - taken
            said = [f"{_some(more)} more often than asked"] * bool(more) + [f"{_some(less)} not at all"] * bool(less)
            raise PenstockError(
                f"Spark would read other files than it was given: {' and '.join(said)}",
                where=group.root,
                fix="Nothing was read or written. Rename the files, and report this as a bug with their names.",
            )
        return frame

    def _input_files(self, frame: DataFrame) -> list[str]:
        """The URIs of the files that a relation reads, one as often as it is read; `inputFiles()` has each once."""
        relation = frame._jdf.queryExecution().analyzed()
        if relation.getClass().getSimpleName() == "LogicalRelation":
            index = relation.relation().location()
        else:
            # What `spark.sql.sources.useV1SourceList` leaves to the second kind of data source.
            index = relation.table().fileIndex()
        # One call for all of them; a URI has no line break.
        joined = java_class(self._spark, "org.apache.hadoop.util.StringUtils").join("\n", index.inputFiles())
        return str(joined).split("\n") if joined else []

    def _inferred(self, group: _Group) -> StructType:
        """The columns of a group's files; they are read for that, once."""
        from pyspark.sql.types import StructType

        if group not in self._found:
            by_lines = group.is_odd and self._format in ("csv", "json")
            found = (
                self._inferred_from_lines(group)
                if by_lines
                else self._load(self._reader(group, infer=True), group).schema
            )
            self._found[group] = StructType([field for field in found.fields if field.name != rescue.CORRUPT])
        return self._found[group]

    def _inferred_from_lines(self, group: _Group) -> StructType:
        """The columns of csv and json files with names like patterns.

        Spark's inference opens the files by a list of its own, in which such names multiply. So the lines are read
        here, and Spark is asked what is in them.
        """
        from pyspark.sql.types import StructType

        options = {key.lower(): value for key, value in self._source.source_options.items()}
        whole = options.get("multiline", "false").lower() == "true"
        coded = options.get("encoding", options.get("charset", "utf-8")).lower() not in _UTF8
        if coded or (whole and self._format == "csv") or "value" in {name.lower() for name in group.folders}:
            raise PenstockError(
                "Spark can't infer the columns of a file that has one of [ ] { } * ? \\ in its path, when it is read "
                "by multiLine or an encoding",
                where=next(path for path in group.files if _PATTERN.search(path)),
                fix="Declare the columns in `source_columns`, or rename the file.",
            )
        wanted = {"wholetext": "true"} if whole else {"lineSep": options["linesep"]} if "linesep" in options else {}
        text = self._load(self._named(group, self._spark.read.format("text").options(**wanted)), group)
        string = java_class(self._spark, "org.apache.spark.sql.Encoders").STRING()
        lines = getattr(text.select("value")._jdf, "as")(string)
        found = getattr(self._reader(group, infer=True)._jreader, self._format)(lines).schema()
        fields = {field.name.lower(): field for field in StructType.fromJson(json.loads(found.json())).fields}
        for field in text.schema.fields[1:]:
            # A folder's column wins over one of the same name in the files.
            fields[field.name.lower()] = field
        return StructType(list(fields.values()))

    def _read(self, group: _Group, schema: StructType, virtual: Sequence[str]) -> DataFrame:
        """The rows of a group, with the virtual columns that are wanted."""
        from pyspark.sql.types import StringType, StructField, StructType

        rescued = self._source.rescued_data_column
        if rescued is None:
            return self._with_virtual(self._load(self._reader(group).schema(schema), group), VIRTUAL, virtual)
        rescue.check_name(rescued, [*schema.names, *VIRTUAL])
        folders = {name.lower() for name in group.folders}
        beside = [field for field in schema.fields if field.name.lower() in folders]
        fields = [field for field in schema.fields if field.name.lower() not in folders]
        read = rescue.with_unknown(fields, self._inferred(group)) if self._format == "json" else fields
        # A folder's column wins over a field of its name.
        read = [field for field in read if field.name.lower() not in folders]
        corrupt = StructField(rescue.CORRUPT, StringType(), True)
        frame = self._load(self._reader(group).schema(StructType([*read, *beside, corrupt])), group)
        # Those of folders come also where the schema that is given has them not.
        names = [name for name in frame.columns if name.lower() in folders]
        if self._format == "json":
            frame = rescue.from_records(frame, fields, read, names, rescued)
        else:
            frame = rescue.from_rows(frame, fields, names, rescued, self._source.source_options)
        shown = [*schema.names, *(name for name in names if name not in schema.names), rescued]
        return self._with_virtual(frame.select(*map(quote, shown)), VIRTUAL, virtual)

    def _reader(self, group: _Group, *, infer: bool = False) -> DataFrameReader:
        defaults = {
            key: value for key, value in _DEFAULTS.get(self._format, {}).items() if infer or key not in _INFERENCE_ONLY
        }
        if self._source.source_options.get("header", "false") != "true":
            defaults.pop("enforceSchema", None)
        reader = self._spark.read.format(self._format).options(**{**defaults, **self._source.source_options})
        if self._source.rescued_data_column is not None:
            # A bad record is not to fail the inference either.
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", rescue.CORRUPT)
            reader = reader.option("samplingRatio", "1") if infer else reader
        return self._named(group, reader)

    def _named(self, group: _Group, reader: DataFrameReader) -> DataFrameReader:
        """A reader that takes the group's paths for names."""
        reader = reader.option("basePath", self._hadoop(group.root)).option("ignoreMissingFiles", "false")
        return reader.option("__globPaths__", "true" if group.is_escaped else "false")

    def _with_virtual(
        self, frame: DataFrame, made: dict[str, str], wanted: Sequence[str], metadata: dict[str, Any] | None = None
    ) -> DataFrame:
        from pyspark.sql import functions as F

        there = {name.lower() for name in frame.columns}
        given = {} if metadata is None else {"metadata": metadata}
        columns = [F.expr(made[name]).alias(name, **given) for name in wanted if name not in there]
        return frame.select("*", *columns) if columns else frame

    def _groups(self, paths: list[str]) -> list[_Group]:
        """Spark reads files together when they share a root and the columns in their folder names."""
        groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
        for path in paths:
            root = next(
                (root for root in self._roots if path.startswith(root.rstrip("/") + "/")), os.path.dirname(path)
            )
            below = path[len(root) :].rsplit("/", 1)[0]
            folders = tuple(found.group(1) for part in below.split("/") if (found := _FOLDER_COLUMN.fullmatch(part)))
            # Hadoop's patterns know no colon, escaped or not. Such a file is read alone, where nothing multiplies.
            alone = path if _PATTERN.search(path) and ":" in path.partition("://")[2 if is_uri(path) else 0] else ""
            groups.setdefault((root, folders, alone), []).append(self._hadoop(path))
        return [_Group(root, folders, tuple(files)) for (root, folders, _), files in groups.items()]


@dataclass(frozen=True)
class _Group:
    root: str
    folders: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def is_odd(self) -> bool:
        """Whether a name looks like a pattern."""
        return any(_PATTERN.search(path) for path in self.files)

    @property
    def is_escaped(self) -> bool:
        return len(self.files) > 1 and self.is_odd

    @property
    def paths(self) -> list[str]:
        """What Spark is given; under names that are not escaped it is told that there are no patterns."""
        return [_escaped(path) for path in self.files] if self.is_escaped else list(self.files)


def _escaped(path: str) -> str:
    return _PATTERN.sub(r"\\\g<0>", path)


def _path_of(uri: str) -> str:
    """The path that a URI of Spark's stands for, spelled as it was given.

    >>> _path_of("file:///landing/a%20%5Bb%5D%2541.json"), _path_of("s3a://bucket/a%23b")
    ('/landing/a [b]%41.json', 's3a://bucket/a#b')
    """
    return "/" + unquote(uri[len("file:") :]).lstrip("/") if uri.startswith("file:") else unquote(uri)


def _some(files: Counter[str]) -> str:
    names = sorted(files)
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else "")


def _struct(schema: dict[str, Any]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(schema)


def _with_new_fields(known: DataType, found: DataType) -> DataType:
    """A known type with the fields that its structs have gained."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(known, StructType) and isinstance(found, StructType):
        gained = {field.name.lower(): field for field in found.fields}
        fields = []
        for field in known.fields:
            other = gained.pop(field.name.lower(), field)
            fields.append(StructField(field.name, _with_new_fields(field.dataType, other.dataType), True))
        return StructType([*fields, *gained.values()])
    if isinstance(known, ArrayType) and isinstance(found, ArrayType):
        return ArrayType(_with_new_fields(known.elementType, found.elementType))
    if isinstance(known, MapType) and isinstance(found, MapType):
        return MapType(known.keyType, _with_new_fields(known.valueType, found.valueType))
    return known


def _with_nulls(frame: DataFrame, fields: list[StructField]) -> DataFrame:
    """The columns of folders that these files do not lie in."""
    from pyspark.sql import functions as F

    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in fields]
    return frame.select("*", *nulls) if nulls else frame


def _leave_out(schema: StructType, names: set[str]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name.lower() not in names]) if names else schema
