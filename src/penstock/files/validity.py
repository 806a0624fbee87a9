"""Reasons why a plan of files can never run."""

from __future__ import annotations

from penstock.files.config import FileSource
from penstock.files.plan import FilePlan
from penstock.files.roots import located
from penstock.files.source import matching
from penstock.files.status import changed
from penstock.storage import is_below


def unlike_config(plan: FilePlan, source: FileSource) -> str | None:
    """Why a plan to create the table does not fit the config; None if it does. A run with another config planned it."""
    if not plan.replace:
        return None
    files = located(plan.read)
    for path in files["path"].to_pylist():
        if not any(is_below(path, root) for root in source.source_roots):
            return f"{path} is below none of the roots that the model has now"
    if matching(files, source).num_rows < files.num_rows:
        return "it has files that the model's patterns leave out now"
    return None


def changed_files(plan: FilePlan, storage_options: dict[str, str]) -> dict[str, str]:
    """The files of a plan that are not as they were listed: path → "vanished" or "changed". The stores are asked."""
    return changed(located(plan.read), plan.roots.roots, storage_options)
