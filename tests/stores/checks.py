"""What holds on every store, checked on one that a fixture starts."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from penstock.api import Lake
from penstock.files import Listings
from penstock.sql.names import Name
from penstock.storage import Storage

ORDERS, MOVED = Name("silver", "orders"), Name("gold", "moved")
ODD = ["10%3A00.json", "a#b", "q?r=1", "p+q", "s p", "ü 文", "d/e&f<g>", "%41", "50%", "[x]{y}*", "~'\""]


def objects(root: str, options: dict[str, str]) -> None:
    storage = Storage(f"{root}/objects", options)
    assert storage.head("a") is None
    assert list(storage.list("")) == []
    for key in ODD:
        assert storage.write_new(key, key.encode())
        assert storage.read(key) == key.encode()
        assert storage.read_start(key) == key.encode()[:1]
        found = storage.head(key)
        assert found is not None
        assert (found.path, found.size) == (key, len(key.encode()))
    assert {entry.path for entry in storage.list("")} == set(ODD)
    assert storage.folders("") == ["d"]
    listed = Listings(options).of([storage.root])["path"].to_pylist()
    assert set(listed) == {f"{storage.root}/{key}" for key in ODD}
    storage.copy("a#b", "copies/a#b")
    storage.write("copies/a#b", b"new")
    assert storage.read("copies/a#b") == b"new"
    storage.delete_folder("copies")
    for key in ODD:
        storage.delete(key)
        storage.delete(key)
    assert list(storage.list("")) == []
    assert not storage.has_folder("")


def put_if_absent(root: str, options: dict[str, str], rounds: int, writers: int = 4) -> None:
    """Of writers at once, exactly one wins, and its bytes are kept."""
    storages = [Storage(f"{root}/races", options) for _ in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        for number in range(rounds):
            data = [f"{number}-{writer}".encode() for writer in range(writers)]
            won = list(pool.map(Storage.write_new, storages, [str(number)] * writers, data))
            assert won.count(True) == 1
            assert storages[0].read(str(number)) == data[won.index(True)]


def relations(root: str, options: dict[str, Any]) -> None:
    """A table of two commits is found, renamed and dropped."""
    lake = Lake(f"{root}/lake", storage_options=options)
    location = f"{lake.root}/silver/orders"
    for number in range(2):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        write_deltalake(location, rows, mode="append", storage_options=lake.storage_options)
    assert [relation.name for relation in lake.tables()] == [ORDERS]
    assert lake.log_of(ORDERS).version == 1
    lake.rename(ORDERS, MOVED)
    assert [relation.name for relation in lake.tables()] == [MOVED]
    assert ids(lake, MOVED) == Counter([0, 1])
    lake.drop(MOVED)
    assert lake.tables() == []
    assert list(lake.storage.list("gold")) == list(lake.storage.list("silver")) == []


def ids(lake: Lake, name: Name) -> Counter[int]:
    table = DeltaTable(lake.folder_of(name), storage_options=lake.storage_options or None)
    return Counter(table.to_pyarrow_table()["id"].to_pylist())


def land(root: str, options: dict[str, str], numbers: range) -> None:
    storage = Storage(f"{root}/landing", options)
    for number in numbers:
        storage.write(f"day={number % 2}/{number}.json", json.dumps({"id": number}).encode())
