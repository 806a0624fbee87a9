"""Whether a store refuses to write an object that is there: every commit on S3 rests on it.

Some S3 servers take the condition, ignore it, and overwrite. Then two writers would lose each other's commits without
an error. So a bucket is tried before the first commit: a small object is put twice, and the second put must fail. The
answer is kept in the cache, so it costs three requests once a machine. No JVM starts.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from penstock.config.store_options import S3, kinds
from penstock.errors import PenstockError
from penstock.lake.relations import digest
from penstock.secrets import is_secret, logger
from penstock.spark.startup.cache import COMPILED, is_trusted_file, trusted_folder
from penstock.storage import Storage, split_root

log = logger("penstock.stores")


def check_conditional_writes(root: str, options: Mapping[str, str], *, single_writer: bool = False) -> None:
    """PenstockError if two writers could overwrite each other's objects below a root on S3.

    The other stores have no such servers. With `single_writer`, the user says that there are no two.
    """
    if S3 not in kinds(root, {}):
        return
    if single_writer:
        log.debug("%s is written by one process at a time, as `session.single_writer` says", root)
        return
    _check(root, tuple(sorted(options.items())))


@lru_cache(maxsize=64)
def _check(root: str, given: tuple[tuple[str, str], ...]) -> None:
    options = dict(given)
    address, _ = split_root(root)
    known = _known(address, options)
    if known is not None and is_trusted_file(known):
        return
    if not refuses_to_overwrite(Storage(root, options)):
        raise PenstockError(
            "This store ignores `If-None-Match: *` and overwrites an object that is there, so two writers would lose "
            "each other's commits: nothing was written",
            where=address,
            fix="Use a store with conditional writes (Amazon S3, MinIO, R2, Ceph from Squid on), or upgrade this one. "
            "If one process at a time writes to the lake, set `single_writer: true` under `session`.",
        )
    log.debug("%s refuses to overwrite an object, as commits need it", address)
    if known is not None:
        try:
            known.touch(mode=0o600)
        except OSError as error:  # a cache that can't be written costs three requests in each process
            log.debug("this is not remembered: %s", error)


def refuses_to_overwrite(storage: Storage) -> bool:
    """Whether the store keeps an object that is put a second time with the condition that it is not there."""
    path = f".penstock-probe-{uuid.uuid4()}"
    try:
        storage.write_new(path, b"1")
        return not storage.write_new(path, b"2")
    finally:
        storage.delete(path)


def _known(address: str, options: Mapping[str, str]) -> Path | None:
    """The file that says that this bucket passed, for these options but for the secret ones; None without a cache."""
    plain = {key: value for key, value in options.items() if not is_secret(key)}
    try:
        # `.json`, so that the cache removes it when nothing has used it for long.
        return trusted_folder(COMPILED) / f"conditional-{digest(address, plain)}.json"
    except (OSError, PenstockError):
        return None
