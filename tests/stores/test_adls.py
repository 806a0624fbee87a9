"""A lake on Azure's blob store, by its emulator: `make test-adls`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from penstock.api import Lake
from penstock.delta.layout import Layout
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.files import FileSource
from penstock.files.query import FileQuery
from penstock.protocol.run import run_job
from penstock.sql.names import Name
from penstock.storage import Storage, split_path
from tests.stores import azurite, checks
from tests.unit.files.conftest import NO_SPARK
from tests.unit.files.test_store_faults import OneCommitJob

Options = dict[str, str]
EVENTS = Name("bronze", "events")


@pytest.fixture(scope="module")
def options() -> Iterator[Options]:
    with azurite.serve() as options:
        yield options


def test_objects(options: Options) -> None:
    checks.objects(azurite.ROOT, options)


def test_put_if_absent_has_one_winner(options: Options) -> None:
    checks.put_if_absent(azurite.ROOT, options, rounds=50)


@pytest.mark.parametrize(
    "root",
    [
        azurite.ROOT,
        f"az://{azurite.CONTAINER}",
        f"abfs://{azurite.CONTAINER}@{azurite.ACCOUNT}.dfs.core.windows.net",
        f"https://{azurite.ACCOUNT}.dfs.core.windows.net/{azurite.CONTAINER}",
    ],
)
def test_relations_in_any_spelling(root: str, options: Options) -> None:
    assert Lake(f"{root}/lake", storage_options=options).root == f"{azurite.ROOT}/lake"
    checks.relations(root, options)


class Job(OneCommitJob):
    def _ids(self, paths: list[str]) -> list[int]:
        found = []
        for path in paths:
            root, key = split_path(path, [f"{azurite.ROOT}/landing"])
            found.append(json.loads(Storage(root, self.lake.storage_options).read(key))["id"])
        return found


def test_files_are_loaded_once(options: Options) -> None:
    """Two batches: for a third commit, Azurite gives delta-rs the wrong listing (it ignores `startFrom`)."""

    def run() -> bool:
        lake = Lake(f"az://{azurite.CONTAINER}/ingest", storage_options=options)
        given = {"source_roots": [f"{azurite.ROOT}/landing"], "safety_buffer_seconds": 0, "max_files_per_trigger": 2}
        source = FileSource.from_mapping(given, storage_options=lake.storage_options)
        job = Job(lake, EVENTS, source, FileQuery.read("select id from @data"), NO_SPARK, Layout())
        run_job(job, replace=False)
        assert checks.ids(lake, EVENTS) == Counter(range(4))
        return job.report.nothing_new

    checks.land(azurite.ROOT, options, range(4))
    assert not run()
    assert run()


@pytest.mark.parametrize("verb", ["list", "head", "table"])
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"account_key": "YWJj"}, "no permission|rejects the signature"),
        ({"container": "other"}, "no bucket or container"),
    ],
)
def test_a_refusal_is_explained(verb: str, wrong: dict[str, str], what: str, options: Options) -> None:
    container = wrong.get("container", azurite.CONTAINER)
    root = azurite.ROOT.replace(azurite.CONTAINER, container)
    given = {**options, **{key: value for key, value in wrong.items() if key != "container"}}
    with pytest.raises(PenstockError, match=what) as caught:
        {
            "list": lambda: list(Storage(root, given).list("")),
            "head": lambda: Storage(root, given).head("a"),
            "table": lambda: Table.open(f"{root}/t", given),
        }[verb]()
    assert root in str(caught.value)
    assert given["account_key"] not in str(caught.value)
