"""Small objects on local disk, S3, ADLS, GCS and HDFS, with the same few methods for every store."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.exceptions import NotFoundError as StoreNotFound
from obstore.store import LocalStore, ObjectStore, from_url

from penstock.config import store_options
from penstock.errors import NotFound, PenstockError
from penstock.storage.failures import explain, is_uncertain, says_no_bucket
from penstock.storage.hdfs import HdfsStore
from penstock.storage.locations import is_uri, join, split_root
from penstock.storage.profiles import Profile, Provider, region_of

# obstore rejects a key with such a part, or strips a slash from an end and then addresses another object.
_INVALID_KEY = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f]")
# obstore also raises Python's own errors, e.g. FileNotFoundError for a missing bucket. The client of HDFS has no others.
_FAILURES = (BaseError, ValueError, OSError, RuntimeError)
_MAYBE = (
    "The object may exist nevertheless, if only the store's answer was lost. Check `storage_options` and run again."
)
_READ_AS_ANOTHER = re.compile(r"\\|%[0-9A-Fa-f]{2}")
_CONFLICTS = 4
_CHECK = "Check the path, its permissions and `storage_options`."


@dataclass(frozen=True)
class Entry:
    """One object: its path below the storage's root, the time of its last write, and its size in bytes."""

    path: str
    modified: datetime
    size: int


def _first_line(text: object) -> str:
    """The first line of an error's text. The other lines are obstore's dump of its arguments."""
    return str(text).strip().split("\n", 1)[0]


def _is_panic(error: BaseException) -> bool:
    """Whether Rust panicked. Such an error is not an Exception, and its class can't be imported."""
    return type(error).__name__ == "PanicException"


class Storage:
    """The objects below one root. Paths are relative to the root, use `/`, and are never decoded or normalized.

    A missing object is NotFound, None or an empty result. Every other failure of the store is a PenstockError.
    """

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self.root = root
        self.local = not is_uri(root)
        self._options = options or {}
        self._address, self._prefix = split_root(root)
        self._opened: ObjectStore | HdfsStore | None = None
        self._has_bucket = False

    @property
    def _store(self) -> ObjectStore | HdfsStore:
        if self._opened is None:
            try:
                self._opened = self._open()
            except BaseException as error:
                if not isinstance(error, _FAILURES) and not _is_panic(error):
                    raise
                raise PenstockError(
                    f"The store can't be opened: {store_options.hidden(_first_line(error), self._options)}",
                    where=self.root,
                    fix="Use a path or a URI such as s3://, gs://, abfss:// or hdfs://, and check `storage_options`.",
                ) from error
        return self._opened

    def _open(self) -> ObjectStore | HdfsStore:
        if self.local:
            return LocalStore(self.root, mkdir=True)
        if self._address.startswith("hdfs://"):
            return HdfsStore(self._address)
        return from_url(self._address, **self._given())

    def _given(self) -> dict[str, Any]:
        """What obstore opens the store with. The keys of an AWS profile come from a provider that renews them."""
        store, client = store_options.for_store(self._address, self._options)
        given: dict[str, Any] = {"client_options": client or None}
        if retries := store_options.retries(self._options):
            given["retry_config"] = retries
        if self._address.startswith("s3://") and (profile := Profile.of(self._options)) is not None:
            store |= region_of(profile, store)
            given["credential_provider"] = Provider(self._options)
        return given | {"config": store or None}

    def check_root(self, *, writable: bool) -> None:
        """Raise a clear error now if the root could not be used later."""
        if not self.local:
            self.folders("")
            return
        if found := _READ_AS_ANOTHER.search(self.root):
            raise PenstockError(
                f"The root contains {found.group()}, which delta-rs reads as another character",
                where=self.root,
                fix="Choose another folder.",
            )
        root = Path(self.root)
        existing = next(path for path in (root, *root.parents) if os.path.exists(path))
        if not existing.is_dir():
            what = "The root is a file" if existing == root else f"The root is below a file, {existing}"
            raise PenstockError(what, where=self.root, fix="Choose a folder.")
        if not os.access(existing, os.R_OK | os.X_OK):
            raise PenstockError("The root can't be read", where=self.root, fix="Check its permissions.")
        if writable and not os.access(existing, os.W_OK | os.X_OK):
            raise PenstockError("The root can't be written", where=self.root, fix="Check its permissions.")

    def exists(self, path: str) -> bool:
        return self.head(path) is not None

    def head(self, path: str) -> Entry | None:
        """One object's path, time and size; None only if the store answers that the object does not exist."""
        if self.local:
            # Not through obstore: the name of a file on disk may be an invalid key for obstore.
            status = self._status(path)
            if status is None or not stat.S_ISREG(status.st_mode):
                return None
            return Entry(path, datetime.fromtimestamp(status.st_mtime, timezone.utc), status.st_size)
        key = self._key(path)
        try:
            meta = self._store.head(key)
        except (StoreNotFound, FileNotFoundError):
            self._check_bucket(path)
            return None
        except _FAILURES as error:
            raise self._failed("checked", path, self._reason(key, error)) from error
        return Entry(path, meta["last_modified"], meta["size"])

    def read(self, path: str) -> bytes:
        """The whole object; NotFound if it does not exist."""
        if self.local and not self._is_file(path):
            # Opening the store would create its folder.
            raise self._missing(path)
        key = self._key(path)
        try:
            return bytes(self._store.get(key).bytes())
        except (StoreNotFound, FileNotFoundError) as error:
            raise self._missing(path, error) from error
        except _FAILURES as error:
            raise self._failed("read", path, error) from error

    def read_start(self, path: str) -> bytes:
        """The object's first byte, empty if the object is empty. This checks that the store permits the read."""
        try:
            if self.local:
                # Not through obstore: the name of a file on disk may be an invalid key for obstore.
                with open(os.path.join(self.root, path), "rb") as file:
                    return file.read(1)
            return bytes(self._store.get_range(self._key(path), start=0, length=1))
        except (StoreNotFound, FileNotFoundError) as error:
            raise self._missing(path, error) from error
        except _FAILURES as error:
            raise self._failed("read", path, error) from error

    def write(self, path: str, data: bytes) -> None:
        """Write the object atomically, over an old one too: a reader sees the old object or the new one."""
        key = self._key(path)
        try:
            self._store.put(key, data)
        except _FAILURES as error:
            raise self._failed("written", path, error, _MAYBE) from error

    def write_new(self, path: str, data: bytes) -> bool:
        """Write the object only if it does not exist (put-if-absent). False if another writer was first.

        A store may write the object but lose its answer. The client then tries again and learns that the object
        exists, or it gives up. So this method reads the object after such an answer: equal bytes count as our own
        write, and the result is True. Two writers of the same bytes therefore both get True.

        S3 also answers "conflict" while another put is on its way, and obstore then says that the object exists. If it
        does not, the put is tried again.
        """
        for _ in range(_CONFLICTS - 1):
            try:
                return self._put_new(path, data)
            except NotFound:
                continue
        try:
            return self._put_new(path, data)
        except NotFound as error:
            raise PenstockError(
                f"The store answered {_CONFLICTS} times that another write is on its way, and there is no object",
                where=join(self.root, path),
                fix="Nothing was written. Run again.",
            ) from error

    def _put_new(self, path: str, data: bytes) -> bool:
        """One put of `write_new`; NotFound if the store says that the object exists, and it does not."""
        key = self._key(path)
        try:
            self._store.put(key, data, mode="create")
        except AlreadyExistsError:
            return self.read(path) == data
        except _FAILURES as error:
            failure = self._failed("written", path, error, _MAYBE)
            try:
                if self.read(path) == data:
                    return True
            except PenstockError:
                pass  # it is not there, or the store does not answer; the first error says more
            raise failure from error
        return True

    def copy(self, old: str, new: str) -> None:
        """Copy an object inside its store, without a download. NotFound if it does not exist."""
        source, target = self._key(old), self._key(new)
        try:
            self._store.copy(source, target)
        except (StoreNotFound, FileNotFoundError) as error:
            raise self._missing(old, error) from error
        except _FAILURES as error:
            raise self._failed("copied", old, error, _MAYBE) from error

    def delete(self, path: str) -> None:
        """Delete an object. It is no error if the object does not exist."""
        key = self._key(path)
        try:
            self._store.delete(key)
        except (StoreNotFound, FileNotFoundError) as error:
            if says_no_bucket(str(error)):
                raise self._failed("deleted", path, error) from error
        except _FAILURES as error:
            raise self._failed("deleted", path, error) from error

    def list(self, folder: str) -> Iterator[Entry]:
        """Every object below a folder, in no order; empty if the folder does not exist."""
        if self.local and not self._is_folder(folder):
            return
        below = self._key(folder)
        try:
            for chunk in self._store.list(below or None):
                for meta in chunk:
                    yield Entry(self._below(meta["path"]), meta["last_modified"], meta["size"])
        except _FAILURES as error:
            raise self._failed("listed", folder, error) from error

    def batches(self, rows: int) -> Iterator[tuple[str, Any]]:
        """Every object below the root, as obstore's Arrow batches, each with a prefix for its `path` column.

        `path` is the whole key in the bucket. The prefix followed by the key is the object's location.
        """
        try:
            for chunk in self._store.list(self._key("") or None, chunk_size=rows, return_arrow=True):
                yield join(self._address, ""), chunk
        except _FAILURES as error:
            raise self._failed("listed", "", error) from error

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders directly below a folder, sorted; empty if the folder does not exist."""
        if self.local:
            try:
                with os.scandir(os.path.join(self.root, folder)) as entries:
                    return sorted(entry.name for entry in entries if entry.is_dir())
            except (FileNotFoundError, NotADirectoryError):
                return []
            except OSError as error:
                raise self._failed("listed", folder, error) from error
        below = self._key(folder)
        try:
            listed = self._store.list_with_delimiter(below or None)
        except _FAILURES as error:
            raise self._failed("listed", folder, error) from error
        return sorted(prefix.rstrip("/").rsplit("/", 1)[-1] for prefix in listed["common_prefixes"])

    def has_folder(self, folder: str) -> bool:
        if self.local:
            return self._is_folder(folder)
        return next(self.list(folder), None) is not None

    def make_folder(self, folder: str) -> None:
        """Create a folder on a disk, so that people see it. Does nothing on an object store, which has no folders."""
        if self.local:
            try:
                os.makedirs(os.path.join(self.root, folder), exist_ok=True)
            except OSError as error:
                raise self._failed("created", folder, error) from error

    def delete_folder(self, folder: str) -> None:
        """Delete a folder and everything below it, not atomically. The caller checks first that this is allowed."""
        if self.local:
            try:
                shutil.rmtree(os.path.join(self.root, folder))
            except FileNotFoundError:
                return
            except OSError as error:
                raise self._failed("deleted", folder, error) from error
            return
        keys = [self._key(entry.path) for entry in self.list(folder)]
        try:
            if keys:
                self._store.delete(keys)
        except _FAILURES as error:
            raise self._failed("deleted", folder, error) from error

    def _key(self, path: str) -> str:
        """The object's key in the opened store. An error if obstore would address another object by it."""
        key = "/".join(part for part in (self._prefix, path) if part)
        if key and _INVALID_KEY.search(key):
            raise PenstockError(
                f"The key {key!r} can't be addressed: it has an empty part, a part `.` or `..`, a slash at its start "
                "or end, or a control character",
                where=self.root,
                fix="Rename the object, or correct the path.",
            )
        return key

    def _below(self, key: str) -> str:
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _is_file(self, path: str) -> bool:
        return stat.S_ISREG(self._mode(path))

    def _is_folder(self, path: str) -> bool:
        return stat.S_ISDIR(self._mode(path))

    def _mode(self, path: str) -> int:
        status = self._status(path)
        return 0 if status is None else status.st_mode

    def _status(self, path: str) -> os.stat_result | None:
        """The stat of a path on disk; None only if nothing is there. os.path.exists would also hide a denied access."""
        try:
            return os.stat(os.path.join(self.root, path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed("checked", path, error) from error

    def _check_bucket(self, path: str) -> None:
        """Raise if the bucket of an object does not exist: the answer to HEAD does not tell this. Asked once."""
        if self._has_bucket:
            return
        try:
            next(iter(self._store.list(self._key(path))), None)
        except _FAILURES as error:
            if says_no_bucket(str(error)):
                raise self._failed("checked", path, error) from error
        self._has_bucket = True

    def _reason(self, key: str, refused: BaseException) -> BaseException:
        """Why a HEAD was refused. Its answer does not say it, so the store is asked again by a GET."""
        if "status code: 4" in str(refused):
            try:
                self._store.get_range(key, start=0, length=1)
            except _FAILURES as error:
                return error
        return refused

    def _missing(self, path: str, error: BaseException | None = None) -> PenstockError:
        """The error for a missing object: NotFound, or another error if the whole bucket does not exist."""
        if error is not None and says_no_bucket(str(error)):
            return self._failed("read", path, error)
        return NotFound("There is no such object", where=join(self.root, path))

    def _failed(self, verb: str, path: str, error: BaseException, fix: str = _CHECK) -> PenstockError:
        known = None if self.local else explain(str(error), self._address, self._options)
        if known is None:
            reason = _first_line(error)
        else:
            reason, fix = known.what, f"{known.fix} {fix}" if fix == _MAYBE and is_uncertain(str(error)) else known.fix
        return PenstockError(
            f"The path could not be {verb}: {reason}",
            where=join(self.root, path) if path else self.root,
            fix=fix,
        )
