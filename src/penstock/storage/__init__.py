"""Locations and small objects on local disk, S3, ADLS and GCS, with the same few methods for every store."""

from penstock.storage.files import files_at
from penstock.storage.locations import (
    given_location,
    hadoop_uri,
    is_below,
    is_uri,
    join,
    normalize,
    one_spelling,
    prefix,
    split_path,
    split_root,
)
from penstock.storage.objects import Entry, Storage
from penstock.storage.profiles import with_keys

__all__ = [
    "Entry",
    "Storage",
    "files_at",
    "given_location",
    "hadoop_uri",
    "is_below",
    "is_uri",
    "join",
    "normalize",
    "one_spelling",
    "prefix",
    "split_path",
    "split_root",
    "with_keys",
]
