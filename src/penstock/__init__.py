"""Penstock: files and row-level changes into Delta tables, exactly once, with no catalog and no server."""

from penstock.errors import PenstockError
from penstock.lake.lake import Lake, connect

__all__ = ["Lake", "PenstockError", "connect"]
__version__ = "0.1.0"
