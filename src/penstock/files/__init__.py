"""Ingests files into tables, each file exactly once.

>>> from penstock import files
>>> source = files.FileSource.from_mapping({"source_roots": ["/landing"]})
>>> files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data")    # doctest: +SKIP
"""

from penstock.files.config import FileSource
from penstock.files.job import ingest
from penstock.files.preview import data_columns, preview
from penstock.files.query import FileQuery
from penstock.files.report import Batch, IngestReport
from penstock.files.source import Listings

__all__ = ["Batch", "FileQuery", "FileSource", "IngestReport", "Listings", "data_columns", "ingest", "preview"]
