"""How the files of a model are read, from its config and from the names of its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.config.formats import BY_EXTENSION, RESCUED
from penstock.errors import PenstockError
from penstock.files.config import FileSource
from penstock.spark.reading.read_options import ReadOptions

_COMPRESSED = {"gz", "bz2", "zst", "snappy", "lz4", "deflate", "gzip"}
# The plan alone says which files are read. These options would leave some out, or find others.
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


def format_of(paths: Iterable[str], source: FileSource) -> str:
    """The format of these files: that of the config, else that of their extensions. Raises if they have several."""
    if source.source_format is not None:
        return source.source_format
    seen: dict[str, str] = {}
    for path in paths:
        format = extension_format(path)
        if format is None:
            raise PenstockError(
                "The extension of this file does not tell its format", where=path, fix="Set `source_format`."
            )
        seen.setdefault(format, path)
        if len(seen) > 1:
            one, other = seen.values()
            raise PenstockError(
                f"The files have more than one format: {one} and {other}",
                fix="Set `source_format`, or narrow `source_patterns`.",
            )
    return next(iter(seen), "parquet")


def extension_format(path: str) -> str | None:
    """The format that a file's extension names; None if it names none.

    >>> extension_format("/landing/a.JSON.gz"), extension_format("/landing/a.bin")
    ('json', None)
    """
    parts = path.rsplit("/", 1)[-1].lower().split(".")[1:]
    while parts and parts[-1] in _COMPRESSED:
        parts.pop()
    return BY_EXTENSION.get(parts[-1]) if parts else None


def read_options(source: FileSource, format: str, roots: Sequence[str] = ()) -> ReadOptions:
    """How Spark reads files of this format; raises if a key of the config does not fit the format.

    `roots` are those of a plan; without them, those of the config.
    """
    options = ReadOptions(
        format=format,
        roots=tuple(roots) or source.source_roots,
        reader=source.source_options,
        declared=source.source_columns,
        rescued_column=source.rescued_data_column,
    )
    _check_choosing(options)
    _check_rescued(options)
    return options


def _check_choosing(options: ReadOptions) -> None:
    if chosen := [key for key in options.reader if key.lower() in _CHOOSING]:
        raise PenstockError(
            f"`source_options` can't choose files, but {', '.join(chosen)} would: files left out by Spark would "
            "count as ingested",
            fix="Use `source_patterns`, `source_exclude` or `starting_timestamp`.",
        )


def _check_rescued(options: ReadOptions) -> None:
    column, format = options.rescued_column, options.format
    if column is None:
        return
    if format not in RESCUED:
        raise PenstockError(
            f"`rescued_data_column` ({column}) is for {' and '.join(RESCUED)}, but these files are {format}: the files "
            "declare the types of their values, and a value that can't be read as its column's type is an error",
            fix="Leave `rescued_data_column` out.",
        )
    if format == "json" and not options.is_utf8:
        encoding = options.reader_option("encoding", "charset")
        raise PenstockError(
            f"`rescued_data_column` needs json in UTF-8, but `source_options` names the encoding {encoding}",
            fix="Leave `rescued_data_column` out, or have the files written in UTF-8.",
        )
