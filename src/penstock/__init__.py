"""Penstock: files and row-level changes into Delta tables, exactly once, with no catalog and no server."""

from penstock.api import Lake, connect
from penstock.errors import PenstockError

__all__ = ["Lake", "PenstockError", "connect"]
__version__ = "0.1.0"
