"""Small objects on local disk, S3, ADLS and GCS: few verbs, the same on every store."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.exceptions import NotFoundError as StoreNotFound
from obstore.store import LocalStore, ObjectStore, from_url

from penstock.config import store_options
from penstock.errors import NotFound, PenstockError
from penstock.secrets import credentials_problem

_PATTERN = re.compile(r"[*?\[{]")
_PIECE = re.compile(r"\*|\?|\[([!^]?)([^\]]+)\]|\{([^}]*)\}|.", re.DOTALL)
# Spark reads no file of such a name.
_HIDDEN = re.compile(r"(?:^|/)(?:\.|_(?![^/]*=))")
# obstore refuses a key with such a part, or takes a slash at either end away and so addresses another object.
_NO_KEY = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f]")
# obstore raises errors of Python for some answers: FileNotFoundError for a bucket that is not there.
_FAILURES = (BaseError, ValueError, OSError, NotImplementedError)
_MAYBE = "It may be written all the same, when the answer alone was lost; check `storage_options` and run again."
_READ_AS_ANOTHER = re.compile(r"\\|%[0-9A-Fa-f]{2}")
_CHECK = "Check the path, its permissions and `storage_options`."


@dataclass(frozen=True)
class Entry:
    """One object: its path below the storage's root, when it was written, and how big it is."""

    path: str
    modified: datetime
    size: int


# Spark reads S3 and ADLS through Hadoop's clients, which have schemes of their own.
_HADOOP_SCHEMES = {"s3": "s3a", "az": "abfss", "adl": "abfss"}


def is_uri(text: str) -> bool:
    return "://" in text


def hadoop_uri(location: str) -> str:
    """A location as Hadoop's file systems spell it.

    >>> hadoop_uri("s3://bucket/lake"), hadoop_uri("/data/lake")
    ('s3a://bucket/lake', '/data/lake')
    """
    if not is_uri(location):
        return location
    scheme, rest = location.split("://", 1)
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"


def normalize(location: str, base: str | Path | None = None) -> str:
    """A location as it is kept: an absolute local path, or a URI without a trailing slash.

    >>> normalize("file:///data/lake/")
    '/data/lake'
    >>> normalize("s3://bucket/lake/")
    's3://bucket/lake'
    """
    if location[:5].lower() == "file:":
        location = unquote(_path_of_file_uri(location))
    if "\0" in location:
        raise PenstockError(f"The path {location!r} holds a null character", fix="Correct the path.")
    if is_uri(location):
        return location.rstrip("/")
    try:
        path = Path(location).expanduser()
    except RuntimeError as error:
        raise PenstockError(f"The home folder in {location} can't be found", fix="Write the whole path.") from error
    if not path.is_absolute():
        path = Path(base or os.getcwd()) / path
    return os.path.normpath(path)


def given_location(location: str, base: str | Path | None = None, *, key: str = "location") -> str:
    """A location that a user gives, normalized; one with credentials in it is refused, and they are not shown."""
    if problem := credentials_problem(location):
        raise PenstockError(f"`{key}` {problem}", where=location)
    return normalize(location, base)


def _path_of_file_uri(uri: str) -> str:
    """The path in a `file:` URI; `#` and `?` are letters of it, as in Spark."""
    rest = uri[5:]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise PenstockError(
            f"{uri} names a host, {host}, where a path should begin",
            fix="Write file:///… with three slashes and the whole path, or the path alone.",
        )
    return slash + path


def join(location: str, *parts: str) -> str:
    return "/".join([location.rstrip("/"), *parts])


def split_root(root: str) -> tuple[str, str]:
    """What a store is opened by, and the key that its root has there. Keys are never parsed as parts of a URL.

    >>> split_root("s3://bucket/a%3Ab/c#d")
    ('s3://bucket', 'a%3Ab/c#d')
    """
    scheme, separator, rest = root.partition("://")
    if not separator or scheme.lower() in ("http", "https"):
        # An address of the web may name its bucket anywhere: obstore takes it apart.
        return root, ""
    bucket, _, prefix = rest.partition("/")
    return f"{scheme}://{bucket}", prefix.rstrip("/")


def split_path(path: str, roots: Iterable[str]) -> tuple[str, str]:
    """The root that a file lies below, the nearest of several, and its key there; else its bucket or folder.

    >>> split_path("s3://b/landing/eu/1.csv", ["s3://b/landing", "s3://b/landing/eu"])
    ('s3://b/landing/eu', '1.csv')
    """
    above = [root for root in roots if path.startswith(root.rstrip("/") + "/")]
    if above:
        root = max(above, key=len)
        return root, path[len(root.rstrip("/")) + 1 :]
    if is_uri(path):
        place, key = split_root(path)
        if key:
            return place, key
    folder, _, name = path.rpartition("/")
    return folder or "/", name


def files_at(location: str, options: dict[str, str] | None = None) -> Iterator[Entry]:
    """The files that Spark reads at a location: one file, those of a folder, or those that a pattern names."""
    pattern = _PATTERN.search(location)
    if pattern is not None:
        folder = location[: pattern.start()].rpartition("/")[0]
        named = _compiled(location[len(folder) + 1 :])
        found = (entry for entry in Storage(folder or "/", options).list("") if named.fullmatch(entry.path))
    else:
        folder, _, name = location.rpartition("/")
        one = None if folder.endswith("/") else Storage(folder or "/", options).head(name)
        if one is not None:
            yield one
            return
        found = (entry for entry in Storage(location, options).list(""))
    yield from (entry for entry in found if not _HIDDEN.search(entry.path))


def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of Hadoop's, that also names what lies below a folder that it names."""

    def translated(found: re.Match[str]) -> str:
        piece, (negated, characters, choices) = found.group(), found.groups()
        if piece in ("*", "?"):
            return "[^/]*" if piece == "*" else "[^/]"
        if characters is not None:
            escaped = characters.replace("\\", "\\\\")
            return f"[{'^' if negated else ''}{escaped}]"
        if choices is not None:
            return "(?:" + "|".join(_PIECE.sub(translated, choice) for choice in choices.split(",")) + ")"
        return re.escape(piece)

    return re.compile(_PIECE.sub(translated, pattern) + "(?:/.*)?", re.DOTALL)


def _plain(text: object) -> str:
    """The first line: obstore adds a dump of all that it was given."""
    return str(text).strip().split("\n", 1)[0]


def _is_panic(error: BaseException) -> bool:
    """Whether Rust panicked: an error without a module to import it from, and no Exception."""
    return type(error).__name__ == "PanicException"


class Storage:
    """Objects below one root. Paths are relative to it, with `/` between parts, and are taken as they are written."""

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self.root = root
        self.local = not is_uri(root)
        self._options = options or {}
        self._place, self._prefix = split_root(root)
        self._opened: ObjectStore | None = None

    @property
    def _store(self) -> ObjectStore:
        if self._opened is None:
            store, client = store_options.for_store(self._place, self._options)
            try:
                if self.local:
                    self._opened = LocalStore(self.root, mkdir=True)
                else:
                    given: dict[str, Any] = {"config": store or None, "client_options": client or None}
                    self._opened = from_url(self._place, **given)
            except BaseException as error:
                if not isinstance(error, _FAILURES) and not _is_panic(error):
                    raise
                raise PenstockError(
                    f"The store can't be opened: {store_options.hidden(_plain(error), self._options)}",
                    where=self.root,
                    fix="Use a path or a URI such as s3://, gs:// or abfss://, and check `storage_options`.",
                ) from error
        return self._opened

    def check_root(self, *, writable: bool) -> None:
        """Fail now, with a clear message, where the root could not be used later."""
        if not self.local:
            self.folders("")
            return
        if found := _READ_AS_ANOTHER.search(self.root):
            raise PenstockError(
                f"The root has {found.group()}, which delta-rs reads as another character",
                where=self.root,
                fix="Name another folder.",
            )
        root = Path(self.root)
        existing = next(path for path in (root, *root.parents) if os.path.exists(path))
        if not existing.is_dir():
            what = "The root is a file" if existing == root else f"The root lies below a file, {existing}"
            raise PenstockError(what, where=self.root, fix="Name a folder.")
        if not os.access(existing, os.R_OK | os.X_OK):
            raise PenstockError("The root can't be read", where=self.root, fix="Check its permissions.")
        if writable and not os.access(existing, os.W_OK | os.X_OK):
            raise PenstockError("The root can't be written", where=self.root, fix="Check its permissions.")

    def exists(self, path: str) -> bool:
        return self.head(path) is not None

    def head(self, path: str) -> Entry | None:
        """What is known of one object; None only when the store says that it is not there."""
        if self.local:
            # By the disk itself: a landed file may have a name that is no key of an object store.
            status = self._status(path)
            if status is None or not stat.S_ISREG(status.st_mode):
                return None
            return Entry(path, datetime.fromtimestamp(status.st_mtime, timezone.utc), status.st_size)
        key = self._key(path)
        try:
            meta = obstore.head(self._store, key)
        except (StoreNotFound, FileNotFoundError):
            return None
        except _FAILURES as error:
            raise self._failed("looked at", path, error) from error
        return Entry(path, meta["last_modified"], meta["size"])

    def read(self, path: str) -> bytes:
        if self.local and not self._is_file(path):
            # Opening the store would make its folder.
            raise NotFound("There is no such object", where=join(self.root, path))
        key = self._key(path)
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except (StoreNotFound, FileNotFoundError) as error:
            raise NotFound("There is no such object", where=join(self.root, path)) from error
        except _FAILURES as error:
            raise self._failed("read", path, error) from error

    def read_start(self, path: str) -> bytes:
        """The first byte of an object that is not empty: whether the store gives it out at all."""
        try:
            if self.local:
                # By the disk itself: a landed file may have a name that is no key of an object store.
                with open(os.path.join(self.root, path), "rb") as file:
                    return file.read(1)
            return bytes(obstore.get_range(self._store, self._key(path), start=0, length=1))
        except (StoreNotFound, FileNotFoundError) as error:
            raise NotFound("There is no such object", where=join(self.root, path)) from error
        except _FAILURES as error:
            raise self._failed("read", path, error) from error

    def write(self, path: str, data: bytes) -> None:
        """Put the object in place whole: a reader sees the old one or the new one."""
        key = self._key(path)
        try:
            obstore.put(self._store, key, data)
        except _FAILURES as error:
            raise self._failed("written", path, error, _MAYBE) from error

    def write_new(self, path: str, data: bytes) -> bool:
        """Put the object only if there is none; False when another writer was first.

        A store may write the object and lose its answer. The client then tries again, and is told that the object
        exists, or gives up. So after either answer the object is read: equal bytes are ours, and the result is True.
        Two writers of the same bytes therefore both get True.
        """
        key = self._key(path)
        try:
            obstore.put(self._store, key, data, mode="create")
        except AlreadyExistsError:
            return self._holds(path, data)
        except _FAILURES as error:
            failure = self._failed("written", path, error, _MAYBE)
            try:
                if self._holds(path, data):
                    return True
            except PenstockError:
                pass  # a store that does not answer; the first error says more
            raise failure from error
        return True

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except NotFound:
            return False

    def copy(self, old: str, new: str) -> None:
        """Copy an object inside of its store: it may be a data file of any size."""
        source, target = self._key(old), self._key(new)
        try:
            obstore.copy(self._store, source, target)
        except (StoreNotFound, FileNotFoundError) as error:
            raise NotFound("There is no such object", where=join(self.root, old)) from error
        except _FAILURES as error:
            raise self._failed("copied", old, error, _MAYBE) from error

    def delete(self, path: str) -> None:
        key = self._key(path)
        try:
            obstore.delete(self._store, key)
        except (StoreNotFound, FileNotFoundError):
            return
        except _FAILURES as error:
            raise self._failed("deleted", path, error) from error

    def list(self, folder: str) -> Iterator[Entry]:
        """Every object below a folder, in no order; nothing where the folder is not there."""
        if self.local and not self._is_folder(folder):
            return
        below = self._key(folder)
        try:
            for chunk in obstore.list(self._store, below or None):
                for meta in chunk:
                    yield Entry(self._below(meta["path"]), meta["last_modified"], meta["size"])
        except _FAILURES as error:
            raise self._failed("listed", folder, error) from error

    def batches(self, rows: int) -> Iterator[tuple[str, Any]]:
        """Every object of a store as Arrow batches of obstore's, each with what stands before its `path` column.

        `path` is the whole key in the bucket: prefix and key together are the object's location.
        """
        try:
            for chunk in obstore.list(self._store, self._key("") or None, chunk_size=rows, return_arrow=True):
                yield join(self._place, ""), chunk
        except _FAILURES as error:
            raise self._failed("listed", "", error) from error

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders directly below a folder."""
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
            listed = obstore.list_with_delimiter(self._store, below or None)
        except _FAILURES as error:
            raise self._failed("listed", folder, error) from error
        return sorted(prefix.rstrip("/").rsplit("/", 1)[-1] for prefix in listed["common_prefixes"])

    def has_folder(self, folder: str) -> bool:
        if self.local:
            return self._is_folder(folder)
        return next(self.list(folder), None) is not None

    def make_folder(self, folder: str) -> None:
        """Object stores have no folders to make; a disk shows them to people."""
        if self.local:
            try:
                os.makedirs(os.path.join(self.root, folder), exist_ok=True)
            except OSError as error:
                raise self._failed("made", folder, error) from error

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all below it. The caller has made sure that it may go."""
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
                obstore.delete(self._store, keys)
        except _FAILURES as error:
            raise self._failed("deleted", folder, error) from error

    def move_folder(self, old: str, new: str) -> None:
        """Rename a folder; on a disk at once, on an object store object by object."""
        if self.local:
            try:
                os.makedirs(os.path.dirname(os.path.join(self.root, new)), exist_ok=True)
                os.rename(os.path.join(self.root, old), os.path.join(self.root, new))
            except OSError as error:
                raise self._failed("renamed", old, error) from error
            return
        try:
            for entry in list(self.list(old)):
                try:
                    obstore.copy(self._store, self._key(entry.path), self._key(new + entry.path[len(old) :]))
                except (StoreNotFound, FileNotFoundError):
                    # A folder made as an empty object, `a/`, is listed as `a`; obstore can't address it.
                    if entry.size:
                        raise
        except _FAILURES as error:
            raise self._failed("renamed", old, error) from error
        self.delete_folder(old)

    def _key(self, path: str) -> str:
        """The object's key in what was opened. One that obstore can't address is an error, never another object."""
        key = "/".join(part for part in (self._prefix, path) if part)
        if key and _NO_KEY.search(key):
            raise PenstockError(
                f"The key {key!r} can't be addressed: it has an empty part, a part `.` or `..`, a slash at an end or "
                "a control character",
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
        """What the disk has there; None only where it says that nothing is, which os.path.exists also says of EACCES."""
        try:
            return os.stat(os.path.join(self.root, path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed("looked at", path, error) from error

    def _failed(self, verb: str, path: str, error: BaseException, fix: str = _CHECK) -> PenstockError:
        return PenstockError(
            f"It could not be {verb}: {_plain(error)}",
            where=join(self.root, path) if path else self.root,
            fix=fix,
        )
