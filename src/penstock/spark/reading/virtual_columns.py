"""The columns about the file of a row, which `@data` has if the SELECT names them. Nothing here imports pyspark."""

from __future__ import annotations

FILE_URI = "source_file_uri"
EXPRESSIONS = {
    FILE_URI: "_metadata.file_path",
    "source_file_length": "_metadata.file_size",
    "source_file_modified": "_metadata.file_modification_time",
    # No store that penstock reads tells when a file was created.
    "source_file_created": "cast(null as timestamp)",
}
"""Each virtual column with the SQL that computes it."""
TYPES = dict(zip(EXPRESSIONS, ("string", "bigint", "timestamp", "timestamp"), strict=True))
