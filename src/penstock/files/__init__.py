"""Files into tables, each exactly once.

>>> from penstock import files
>>> source = files.FileSource.from_mapping({"source_roots": ["/landing"]})
>>> files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data")    # doctest: +SKIP
"""

from penstock.files.ingest import Batch, IngestReport, ingest, preview
from penstock.files.listing import Listings
from penstock.files.model import Model
from penstock.files.source import FileSource

__all__ = ["Batch", "FileSource", "IngestReport", "Listings", "Model", "ingest", "preview"]
