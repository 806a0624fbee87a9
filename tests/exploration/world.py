"""The world that the explored processes share: an object store, Delta logs, a landing folder and a clock, all in memory.

A process changes or reads the world by requests alone. A request is a tuple that begins with a verb; `World.do` carries
it out at once and as a whole, and returns an answer that can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from deltalake.exceptions import CommitFailedError

from penstock.errors import NotFound, PenstockError, StatementError, UnreadableTable

Request = tuple[Any, ...]
START = 1_700_000_000_000
"""The clock's first millisecond."""

File = tuple[str, int, int]
"""A landed file: path, modification time, size."""
FOREIGN: File = ("a row of another writer", 0, 0)


@dataclass(frozen=True)
class Answer:
    """What a request brought: a value, or an error of a kind."""

    value: Hashable = None
    error: str | None = None

    def get(self) -> Any:
        """The value; the error is raised."""
        if self.error is not None:
            raise _ERRORS[self.error](str(self.value))
        return self.value


_ERRORS: dict[str, Callable[[str], Exception]] = {
    "not found": lambda text: NotFound(text),
    "unreadable": lambda text: UnreadableTable(text),
    "store": lambda text: PenstockError(text),
    "statement": lambda text: StatementError(text, condition=None),
    "conflict": lambda text: StatementError(text, condition="DELTA_CONCURRENT_TRANSACTION"),
    "metadata": lambda text: StatementError(text, condition="DELTA_METADATA_CHANGED"),
    "protocol": lambda text: StatementError(text, condition="DELTA_PROTOCOL_CHANGED"),
    "commit failed": lambda text: CommitFailedError(text),
}


@dataclass(frozen=True)
class Commit:
    """One commit, with the whole table as it leaves it."""

    version: int
    operation: str
    parameters: tuple[tuple[str, str], ...]
    note: str | None
    id: str
    properties: tuple[tuple[str, str], ...]
    mark: int | None
    void: int | None
    rows: tuple[File, ...]
    """The file that each row came from, sorted."""
    marked: bool = False
    """Whether the commit itself carries the mark."""
    metadata: bool = False
    """Whether the commit itself sets the metadata."""

    def info(self) -> dict[str, Any]:
        """The commit as `Table.history` tells it."""
        return {
            "version": self.version,
            "operation": self.operation,
            "operationParameters": dict(self.parameters),
            "operationMetrics": {"numOutputRows": str(len(self.rows))},
            **({} if self.note is None else {"userMetadata": self.note}),
        }


@dataclass(frozen=True)
class Log:
    """A Delta log. `life` is another after each drop; `broken` while a drop has removed a part of it."""

    life: int
    commits: tuple[Commit, ...]
    broken: bool = False
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        # The log is hashed at each step of each schedule.
        object.__setattr__(self, "_hash", hash((self.life, self.commits, self.broken)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def last(self) -> Commit:
        return self.commits[-1]

    def since(self, version: int) -> tuple[Commit, ...]:
        return self.commits[version + 1 :]


class World:
    """A value: `do` answers with another world where something changed, and with itself where nothing did."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.logs: dict[str, Log] = {}
        self.landing: dict[str, tuple[int, int]] = {}
        self.growing: str | None = None
        """A file that is written to all the time."""
        self.clock = START
        self.lives = 0
        self.problems: tuple[str, ...] = ()
        """Broken promises that a commit has shown."""
        self._key: int | None = None

    @property
    def key(self) -> int:
        """A hash of everything that a process could ever observe."""
        if self._key is None:
            self._key = hash(
                (
                    frozenset(self.objects.items()),
                    frozenset(self.logs.items()),
                    frozenset(self.landing.items()),
                    self.growing,
                    self.clock,
                    self.lives,
                )
            )
        return self._key

    def do(self, request: Request) -> tuple[World, Answer]:
        """Carry a request out: the world after it, and the answer."""
        if request[0] in _READS and self.growing is None:
            return self, getattr(self, "_" + request[0])(*request[1:])
        after = World.__new__(World)
        after.__dict__ = dict(self.__dict__)
        answer: Answer = getattr(after, "_" + request[0].replace(" ", "_"))(*request[1:])
        if after.__dict__ == self.__dict__:
            return self, answer
        after._key = None
        # A read takes no time: schedules that differ in the order of reads alone come to one state.
        after.clock = self.clock + 1
        return after, answer

    def do_with_error(self, request: Request) -> Iterator[tuple[World, Answer]]:
        """The ways in which a request can succeed and be answered by an error all the same."""
        after, answer = self.do(request)
        if after is self or answer.error is not None or request[0] not in _FALSE_ERRORS:
            return
        for false in _FALSE_ERRORS[request[0]]:
            yield after, false

    # The object store

    def _list(self, prefix: str) -> Answer:
        return Answer(tuple(sorted(key for key in self.objects if key.startswith(prefix + "/"))))

    def _get(self, key: str) -> Answer:
        found = self.objects.get(key)
        return Answer(f"There is no such object: {key}", "not found") if found is None else Answer(found)

    def _head(self, key: str) -> Answer:
        found = self.objects.get(key)
        return Answer(None if found is None else len(found))

    def _put(self, key: str, data: bytes) -> Answer:
        self.objects = {**self.objects, key: data}
        return Answer()

    def _create(self, key: str, data: bytes) -> Answer:
        if key in self.objects:
            return Answer(False)
        self.objects = {**self.objects, key: data}
        return Answer(True)

    def _delete(self, key: str) -> Answer:
        self.objects = {other: data for other, data in self.objects.items() if other != key}
        return Answer()

    def _rename(self, old: str, new: str) -> Answer:
        """A folder with its log, at once, as on a disk."""
        if any(key.startswith(new + "/") for key in self.objects) or new in self.logs:
            return Answer(f"{new} is there already", "store")
        self.objects = {
            new + key[len(old) :] if key.startswith(old + "/") else key: data for key, data in self.objects.items()
        }
        self.logs = {new if place == old else place: log for place, log in self.logs.items()}
        return Answer()

    # The landing folder

    def _landing(self, root: str) -> Answer:
        self._write_on()
        return Answer(
            tuple((path, *file) for path, file in sorted(self.landing.items()) if path.startswith(root + "/"))
        )

    def _status(self, paths: tuple[str, ...]) -> Answer:
        self._write_on()
        return Answer(tuple(self.landing.get(path) for path in paths))

    def _write_on(self) -> None:
        if self.growing is not None:
            self.landing = {**self.landing, self.growing: (self.clock, 10)}

    def _grow(self, path: str) -> Answer:
        self.growing = path
        return Answer()

    def _land(self, path: str, size: int) -> Answer:
        """A file appears, or is written again."""
        self.landing = {**self.landing, path: (self.clock, size)}
        return Answer()

    def _vanish(self, path: str) -> Answer:
        self.landing = {other: file for other, file in self.landing.items() if other != path}
        return Answer()

    def _time(self) -> Answer:
        return Answer(self.clock)

    # Delta

    def _open(self, location: str) -> Answer:
        log = self.logs.get(location)
        if log is None:
            return Answer(f"There is no Delta table at {location}", "not found")
        if log.broken:
            return Answer(f"The Delta log at {location} can't be read", "unreadable")
        return Answer(log)

    def _begin(self, location: str) -> Answer:
        """What Delta reads at the start of a transaction: life, version, id and mark; a table that is not there has version -1."""
        log = self.logs.get(location)
        if log is None:
            return Answer((None, -1, None, None))
        if log.broken:
            return Answer(f"DELTA_LOG_FILE_NOT_FOUND at {location}", "statement")
        return Answer((log.life, log.last.version, log.last.id, log.last.mark))

    def _append(self, location: str, life: int, version: int, number: int, note: str, rows: tuple[File, ...]) -> Answer:
        """Delta's append: it goes above commits of others that neither carry the mark nor change the metadata."""
        log = self.logs.get(location)
        if log is None or log.broken or log.life != life:
            return Answer("The table was removed while it was written", "statement")
        if (conflict := self._conflict(log, version)) is not None:
            return conflict
        self._commit(location, "WRITE", note, mode="Append", mark=number, rows=log.last.rows + rows)
        return Answer()

    def _replace(
        self,
        location: str,
        life: int | None,
        version: int,
        number: int,
        note: str,
        properties: tuple[tuple[str, str], ...],
        rows: tuple[File, ...],
    ) -> Answer:
        """CREATE OR REPLACE TABLE AS SELECT with a mark."""
        log = self.logs.get(location)
        if log is None and life is not None:
            return Answer("The table was removed while it was written", "statement")
        if log is not None:
            if log.broken or (life is not None and log.life != life):
                return Answer("The table was removed while it was written", "statement")
            if life is None:
                return Answer("Another writer has made the table", "protocol")
            if (conflict := self._conflict(log, version)) is not None:
                return conflict
        operation = "CREATE OR REPLACE TABLE AS SELECT"
        self._commit(location, operation, note, mark=number, rows=rows, properties=properties, id=self._new_id())
        return Answer()

    def _mark(
        self,
        location: str,
        life: int,
        version: int,
        number: int,
        void: bool,
        note: str | None,
        properties: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        """An empty commit by delta-rs, which also takes an overwrite for a conflict; with properties, any commit."""
        log = self.logs.get(location)
        if log is None or log.broken or log.life != life:
            return Answer("The table was removed", "commit failed")
        newer = log.since(version)
        if any(commit.marked or commit.metadata or ("mode", "Overwrite") in commit.parameters for commit in newer):
            return Answer("The table has moved on", "commit failed")
        voided = number if void else None
        if not properties:
            self._commit(location, "WRITE", note, mode="Append", mark=number, void=voided)
            return Answer()
        if newer:
            return Answer("The table has moved on", "commit failed")
        kept = tuple(sorted({**dict(log.last.properties), **dict(properties)}.items()))
        self._commit(location, "SET TBLPROPERTIES", note, mark=number, void=voided, properties=kept)
        return Answer()

    def _conflict(self, log: Log, version: int) -> Answer | None:
        newer = log.since(version)
        if any(commit.marked for commit in newer):
            return Answer("Another commit carries the mark", "conflict")
        if any(commit.metadata for commit in newer):
            return Answer("The metadata was changed", "metadata")
        return None

    def _new_id(self) -> str:
        return f"id-{self.clock}"

    def _commit(
        self,
        location: str,
        operation: str,
        note: str | None = None,
        *,
        mode: str | None = None,
        mark: int | None = None,
        void: int | None = None,
        rows: tuple[File, ...] | None = None,
        properties: tuple[tuple[str, str], ...] | None = None,
        id: str | None = None,
        parameters: dict[str, str] | None = None,
    ) -> None:
        log = self.logs.get(location)
        if log is None:
            self.lives += 1
            log = Log(self.lives, ())
        last = log.commits[-1] if log.commits else None
        before = last or Commit(-1, "", (), None, "", (), None, None, ())
        given = {**({"mode": mode} if mode else {}), **(parameters or {})}
        commit = Commit(
            version=before.version + 1,
            operation=operation,
            parameters=tuple(given.items()),
            note=note,
            id=before.id if id is None else id,
            properties=before.properties if properties is None else properties,
            mark=before.mark if mark is None else mark,
            void=before.void if void is None else void,
            rows=before.rows if rows is None else tuple(sorted(rows)),
            marked=mark is not None,
            metadata=properties is not None,
        )
        if mark is not None and before.mark is not None and mark <= before.mark:
            self.problems += (f"{location}: the mark {mark} was committed after {before.mark}",)
        twice = [file for file, times in Counter(commit.rows).items() if times > 1 and file != FOREIGN]
        if twice:
            self.problems += (f"{location}: version {commit.version} has {twice[0][0]} more than once",)
        self.logs = {**self.logs, location: Log(log.life, (*log.commits, commit))}

    # Others

    def _restore(self, location: str, back: int) -> Answer:
        """RESTORE to a number of versions before the newest; marks stay."""
        log = self.logs.get(location)
        if log is None or log.broken or log.last.version < back:
            return Answer()
        target = log.commits[log.last.version - back]
        self._commit(
            location,
            "RESTORE",
            rows=target.rows,
            properties=target.properties,
            id=target.id,
            parameters={"version": str(target.version)},
        )
        return Answer()

    def _foreign_create(self, location: str) -> Answer:
        """The user's own CREATE TABLE, without rows."""
        if location not in self.logs:
            self._commit(location, "CREATE TABLE", rows=(), properties=(), id=self._new_id())
        return Answer()

    def _foreign_replace(self, location: str) -> Answer:
        log = self.logs.get(location)
        if log is None or not log.broken:
            self._commit(
                location, "CREATE OR REPLACE TABLE AS SELECT", rows=(FOREIGN,), properties=(), id=self._new_id()
            )
        return Answer()

    def _foreign_overwrite(self, location: str) -> Answer:
        log = self.logs.get(location)
        if log is not None and not log.broken:
            self._commit(location, "WRITE", mode="Overwrite", rows=(FOREIGN,))
        return Answer()

    def _foreign_append(self, location: str) -> Answer:
        log = self.logs.get(location)
        if log is not None and not log.broken:
            self._commit(location, "WRITE", mode="Append", rows=(*log.last.rows, FOREIGN))
        return Answer()

    def _break_log(self, location: str) -> Answer:
        """A drop has removed the first of several commits."""
        if location in self.logs:
            self.logs = {**self.logs, location: replace(self.logs[location], broken=True)}
        return Answer()

    def _remove_log(self, location: str) -> Answer:
        self.logs = {place: log for place, log in self.logs.items() if place != location}
        return Answer()

    def _clone(self, location: str, source: Log, version: int, note: str) -> Answer:
        """A shallow clone of one version, and both marks."""
        given = source.commits[version]
        self._commit(location, "CLONE", rows=given.rows, properties=given.properties, id=self._new_id())
        self._commit(location, "WRITE", note, mode="Append", mark=given.mark, void=given.void)
        return Answer()


_READS = {"list", "get", "head", "landing", "status", "time", "open", "begin"}
_FALSE_ERRORS: dict[str, list[Answer]] = {
    # The store's client tries again by itself, and then finds its own object.
    "create": [Answer(False), Answer("503 after the object was written", "store")],
    "put": [Answer("503 after the object was written", "store")],
    "append": [Answer("The answer to the commit was lost", "statement")],
    "replace": [Answer("The answer to the commit was lost", "statement")],
    "mark": [Answer("The answer to the commit was lost", "commit failed")],
}
