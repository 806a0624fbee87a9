"""What lies in the landing folders and is not in the table yet: the listing of the roots, compared with the ledger."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import RECORDS, without
from penstock.files.report import count
from penstock.files.roots import Roots, below
from penstock.files.selection import Selection, Selector
from penstock.files.source import Listings, matching, none
from penstock.protocol.state import State
from penstock.sql.names import Name


class Landing:
    """The files of one model that are still to come in; listed once a run, and again when a listed file has changed."""

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
        """The roots of the config, and the names that the ledger knows them by."""
        self.bad: dict[str, str] = {}
        """Files that this run could not read, by the names that the ledger knows them by, each with its reason."""

    @property
    def selection(self) -> Selection:
        """The files of the last look."""
        assert self._selection is not None
        return self._selection

    @property
    def batches(self) -> int:
        """How many batches are still to come in, as far as is known."""
        return 0 if self._selection is None else self._selection.backlog.batches

    def second(self) -> pa.Table:
        """The files of the batch after the next one."""
        return self._selection.backlog.second() if self._selection is not None else none(RECORDS)

    def remove(self, records: pa.Table) -> None:
        """Take out the files that have come in, by this run or by another."""
        if self._selection is not None:
            self._selection.remove(records)

    def forget(self) -> None:
        """Compare with the ledger again before the next plan."""
        self._selection = None

    def list_again(self) -> None:
        """List the folders again before the next plan."""
        self._selection, self._is_stale = None, True

    def look(self, state: State, *, replace: bool) -> Selection:
        """The files that are new; listed and compared now, unless that was done already."""
        if self._selection is None:
            self._selection = self._compare(state, replace=replace)
        return self._selection

    def _compare(self, state: State, *, replace: bool) -> Selection:
        source = self._source
        # An empty table of others becomes ours by a plan without files: the plan after that is the first batch.
        first = replace or state.mark is None or (state.mark == state.generation and not self._ledger.records.num_rows)
        listed = self._listings.of(source.source_roots, fresh=self._is_stale)
        self._is_stale = False
        known = none(RECORDS) if first else self._ledger.records
        if replace or state.mark is None:
            self.roots = Roots.first(source.source_roots, source.roots_as_written)
        else:
            self.roots = self._follow_moves(self._ledger.roots, listed, known)
        self.roots.check(str(self._name))
        self._check_store_roots(known)
        return self._selector.select(listed, self.roots, known, state.table, self.bad, first=first)

    def _check_store_roots(self, known: pa.Table) -> None:
        """An object store lists a mistyped prefix as nothing: an error if files came in from there before."""
        for root in self._source.source_roots:
            if not self._listings.is_empty_store_root(root):
                continue
            if below(known, self.roots.name_of(root)).num_rows:
                raise PenstockError(
                    "There is no object below this root, from which files came in before",
                    where=root,
                    fix="Correct `source_roots`, or put the files back; remove the root where it is no longer used.",
                )
            self._warn(f"{self._name}: there is no object below {root}")

    def _follow_moves(self, before: Roots, listed: pa.Table, known: pa.Table) -> Roots:
        """The roots as the ledger knows them. `on_moved_root` decides about a new root whose files are in already."""
        roots = before.then(self._source.source_roots, self._source.roots_as_written)
        for root in roots.unknown_to(before):
            new = below(without(roots.listed(matching(listed, self._source)), known), roots.name_of(root))
            same = {name: new.num_rows - without(new, below(known, name)).num_rows for name in before.names}
            from_names = [name for name, files in same.items() if files]
            if not from_names or self._source.on_moved_root == "ingest":
                continue
            what = f"{count(sum(same.values()), 'file')} below {root} came in from {' and '.join(from_names)} already"
            if self._source.on_moved_root == "fail":
                raise PenstockError(
                    f"{what}, by path, time and size: the folder was moved or copied",
                    where=str(self._name),
                    fix="Set `on_moved_root: accept` where it was moved (the files are those that are in), or "
                    "`on_moved_root: ingest` to bring them in as new ones.",
                )
            if len(from_names) > 1:
                raise PenstockError(
                    f"{what}: one root can't take the place of several",
                    where=str(self._name),
                    fix="Keep a folder for each, or set `on_moved_root: ingest` to bring all of it in as new.",
                )
            roots = roots.moved(root, from_names[0])
        return roots
