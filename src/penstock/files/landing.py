"""The files below the roots that are not in the table yet: the listing, compared with the ledger."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.quarantine import Quarantine
from penstock.files.records import RECORDS, without
from penstock.files.records import known as known_of
from penstock.files.roots import Roots, below
from penstock.files.selection import Selection, Selector
from penstock.files.source import Listings, matching, none
from penstock.protocol.state import State
from penstock.sql.names import Name
from penstock.wording import count


class Landing:
    """The files of one model that are still to be ingested.

    They are listed once a run, and again after a listed file has changed.
    """

    def __init__(
        self, name: Name, source: FileSource, listings: Listings, ledger: Ledger, warn: Callable[[str], None]
    ) -> None:
        self._name = name
        self._source = source
        self._listings = listings
        self._ledger = ledger
        self._warn = warn
        self._selector = Selector(name, source)
        self._selection: Selection | None = None
        self._is_stale = False
        self.roots = Roots.first(source.source_roots, source.roots_as_written)
        """The roots of the config, with their names in the ledger."""
        self.quarantine = Quarantine()

    @property
    def batches(self) -> int:
        """How many batches are left; 0 if the files were not looked at yet."""
        return 0 if self._selection is None else self._selection.backlog.batches

    def second(self) -> pa.Table:
        """The files of the batch after the next one; empty if there is none."""
        return self._selection.backlog.second() if self._selection is not None else none(RECORDS)

    def remove(self, records: pa.Table) -> None:
        """Take out the files that were ingested, by this run or by another one."""
        if self._selection is not None:
            self._selection.remove(records)

    def forget(self) -> None:
        """Compare the listing with the ledger again before the next plan."""
        self._selection = None

    def list_again(self) -> None:
        """List the folders again before the next plan."""
        self._selection, self._is_stale = None, True

    def look(self, state: State, *, replace: bool) -> Selection:
        """The new files; listed and compared now, unless that was done before."""
        if self._selection is None:
            self._selection = self._compare(state, replace=replace)
        return self._selection

    def _compare(self, state: State, *, replace: bool) -> Selection:
        source = self._source
        # A table that others created without rows is claimed by a plan without files. The next plan is the first batch.
        first = replace or state.mark is None or (state.mark == state.generation and not self._ledger.records.num_rows)
        listed = self._listings.of(source.source_roots, fresh=self._is_stale)
        self._is_stale = False
        known = none(RECORDS) if first else known_of(self._ledger.records)
        if replace or state.mark is None:
            self.roots = Roots.first(source.source_roots, source.roots_as_written)
        else:
            self.roots = self._follow_moves(self._ledger.roots, listed, known)
        self.roots.check(str(self._name))
        self._check_store_roots(known)
        return self._selector.select(listed, self.roots, known, state.table, self.quarantine, first=first)

    def _check_store_roots(self, known: pa.Table) -> None:
        """Raise if a root on a store has no object, but files of it were ingested: a mistyped prefix looks like this."""
        for root in self._source.source_roots:
            if not self._listings.is_empty_store_root(root):
                continue
            if below(known, self.roots.name_of(root)).num_rows:
                raise PenstockError(
                    "There is no object below this root, but files of it were ingested before",
                    where=root,
                    fix="Correct `source_roots`, or put the files back. If the root is not used any more, remove it.",
                )
            self._warn(f"{self._name}: there is no object below {root}")

    def _follow_moves(self, before: Roots, listed: pa.Table, known: pa.Table) -> Roots:
        """The roots with their names in the ledger.

        `on_moved_root` decides about a new root that has ingested files: an error, the same files, or new files.
        """
        roots = before.then(self._source.source_roots, self._source.roots_as_written)
        for root in roots.unknown_to(before):
            new = below(without(roots.listed(matching(listed, self._source)), known), roots.name_of(root))
            same = {name: new.num_rows - without(new, below(known, name)).num_rows for name in before.names}
            from_names = [name for name, files in same.items() if files]
            if not from_names or self._source.on_moved_root == "ingest":
                continue
            what = f"Already ingested from {' and '.join(from_names)}: {count(sum(same.values()), 'file')} below {root}"
            if self._source.on_moved_root == "fail":
                raise PenstockError(
                    f"{what}, with the same paths, times and sizes; so the folder was moved or copied",
                    where=str(self._name),
                    fix="Set `on_moved_root: accept` if it was moved (the files are not ingested again), or "
                    "`on_moved_root: ingest` to ingest them as new files.",
                )
            if len(from_names) > 1:
                raise PenstockError(
                    f"{what}; one root can't replace several roots",
                    where=str(self._name),
                    fix="Keep a folder for each root, or set `on_moved_root: ingest` to ingest all files as new files.",
                )
            roots = roots.moved(root, from_names[0])
        return roots
