"""A file is the same file however its root is spelled, and a root that was moved is noticed."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from penstock import PenstockError
from penstock.files import FileSource
from penstock.files.roots import Roots, canonical
from penstock.table import Table


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("s3a://bucket/landing", "s3://bucket/landing"),
        ("S3://bucket/landing", "s3://bucket/landing"),
        ("s3://bucket//landing/", "s3://bucket/landing"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("abfs://c@account/a", "abfss://c@account/a"),
    ],
)
def test_one_name_for_a_store(root, name):
    assert canonical(root) == name
    source = FileSource.from_mapping({"source_roots": [root]})
    assert Roots.first(source.source_roots).name_of(source.source_roots[0]) == name


def test_a_link_to_the_root(shop):
    for _ in range(3):
        shop.land()
    shop.run()
    link = shop.landing.with_name("link")
    link.symlink_to(shop.landing, target_is_directory=True)
    assert shop.run(source_roots=[str(link)]).nothing_new
    shop.land()
    assert shop.run(source_roots=[str(link)]).files == 1
    shop.check()
    assert shop.run().nothing_new
    assert shop.run(source_roots=[str(link), str(shop.landing)]).nothing_new


def test_a_root_that_was_a_link_from_the_beginning(shop):
    link = shop.landing.with_name("link")
    link.symlink_to(shop.landing, target_is_directory=True)
    for _ in range(3):
        shop.land()
    shop.run(source_roots=[str(link)], max_files_per_trigger=1)
    shop.check()
    assert shop.run().nothing_new
    shop.land()
    shop.run(source_roots=[f"{link}//"])
    shop.check()


def test_a_link_that_leads_elsewhere_keeps_its_name(shop):
    link = shop.landing.with_name("link")
    link.symlink_to(shop.landing, target_is_directory=True)
    shop.land("a.json")
    shop.run(source_roots=[str(link)])
    other = shop.landing.with_name("other")
    shutil.copytree(shop.landing, other)
    link.unlink()
    link.symlink_to(other, target_is_directory=True)
    assert shop.run(source_roots=[str(link)]).nothing_new
    (other / "b.json").write_text(json.dumps({"id": 50}))
    shop.expected[50] += 1
    assert shop.run(source_roots=[str(link)]).files == 1
    shop.check()


def test_roots_that_overlap_and_are_narrowed_and_widened(shop):
    for name in ("eu/a.json", "eu/b.json", "us/a.json"):
        shop.land(name)
    shop.run()
    assert shop.run(source_roots=[str(shop.landing / "eu")]).nothing_new
    shop.land("eu/c.json")
    assert shop.run(source_roots=[str(shop.landing / "eu")]).files == 1
    shop.land("us/b.json")
    assert shop.run(source_roots=[str(shop.landing), str(shop.landing / "eu")]).files == 1
    shop.check()
    assert shop.run().nothing_new


@pytest.fixture
def moved(shop):
    """The landing folder, moved after some batches."""
    for _ in range(4):
        shop.land()
    shop.run(max_files_per_trigger=2)
    elsewhere = shop.landing.with_name("elsewhere")
    shop.landing.rename(elsewhere)
    return elsewhere


def test_a_moved_root_stops_the_run(shop, moved):
    version = Table.open(str(shop.table)).version
    with pytest.raises(PenstockError, match=r"4 files below .*elsewhere.*on_moved_root: accept.*on_moved_root: ingest"):
        shop.run(source_roots=[str(moved)])
    assert Table.open(str(shop.table)).version == version


def test_a_moved_root_that_is_accepted(shop, moved):
    config = {"source_roots": [str(moved)], "on_moved_root": "accept"}
    assert shop.run(**config).nothing_new
    shop.landing = moved
    shop.land()
    assert shop.run(**config).files == 1
    shop.check()
    # It was written down with the plan: the key may go.
    shop.land()
    assert shop.run(source_roots=[str(moved)]).files == 1
    shop.check()
    header = json.loads(shop.plan(2).read_text().splitlines()[0])
    assert header["aliases"] == {str(moved): str(moved.with_name("landing"))}


def test_a_moved_root_that_is_taken_for_new(shop, moved):
    shop.run(source_roots=[str(moved)], on_moved_root="ingest")
    for id in shop.expected:
        shop.expected[id] += 1
    shop.check()
    assert shop.run(source_roots=[str(moved)]).nothing_new


def test_a_root_that_was_accepted_and_its_old_place(shop, moved):
    shop.landing.mkdir()
    roots = [str(shop.landing), str(moved)]
    with pytest.raises(PenstockError, match=r"has both .*landing and .*elsewhere"):
        shop.run(source_roots=roots, on_moved_root="accept")


def test_a_project_that_was_moved_as_a_whole(shop, tmp_path, monkeypatch):
    """A relative root is spelled as before: no word is said, and nothing comes in twice."""
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        shop.land()
    shop.run(source_roots=["landing"], max_files_per_trigger=2)
    project = tmp_path / "moved"
    project.mkdir()
    shop.landing.rename(project / "landing")
    shop.landing = project / "landing"
    monkeypatch.chdir(project)
    assert shop.run(source_roots=["landing"]).nothing_new
    shop.land()
    assert shop.run(source_roots=["landing"]).files == 1
    shop.check()
    assert shop.run(source_roots=["landing"]).nothing_new


def test_another_root_with_files_of_the_same_names_is_no_move(shop, tmp_path):
    shop.land("a.json", at=1_700_000_000)
    shop.run()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.json").write_text(json.dumps({"id": 77}))
    os.utime(other / "a.json", (1_600_000_000, 1_600_000_000))
    shop.expected[77] += 1
    shop.run(source_roots=[str(shop.landing), str(other)])
    shop.check()


def test_an_unfinished_plan_whose_root_has_another_spelling(shop):
    link = shop.landing.with_name("link")
    link.symlink_to(shop.landing, target_is_directory=True)
    shop.land()
    shop.run(source_roots=[str(link)])
    shop.land()

    class Crash(BaseException):
        pass

    def step(name: str) -> None:
        if name == "planned":
            raise Crash

    with pytest.raises(Crash):
        shop.run(source_roots=[str(link)], step=step)
    shop.run()
    shop.check()
    assert shop.run().nothing_new


def test_a_rewritten_file_by_another_spelling_of_its_root():
    roots = Roots(("/new",), ("/new",), {"/link": "/real", "/new": "/real"})
    assert roots.spellings("/real/a.json") == ["/new/a.json", "/real/a.json", "/link/a.json"]
