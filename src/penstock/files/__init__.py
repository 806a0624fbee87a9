"""Files into tables, each exactly once.

>>> from penstock import files
>>> source = files.FileSource.from_mapping({"source_roots": ["/landing"]})
>>> files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data")    # doctest: +SKIP
"""

from penstock.files.ingest import ingest
from penstock.files.listing import Listings
from penstock.files.model import Model
from penstock.files.preview import data_columns, preview
from penstock.files.report import Batch, IngestReport
from penstock.files.source import FileSource

__all__ = ["Batch", "FileSource", "IngestReport", "Listings", "Model", "data_columns", "ingest", "preview"]
