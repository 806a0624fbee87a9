"""A file is the same file however its root is spelled, and a root that was moved is noticed."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from penstock import PenstockError
from penstock.delta.table import Table
from penstock.files import FileSource
from penstock.files.roots import Roots, canonical
from penstock.storage import normalize


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
    with pytest.raises(PenstockError, match=r"has both .*was moved to"):
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


def move(shop, name):
    new = shop.landing.with_name(name)
    shop.landing.rename(new)
    shop.landing = new
    return new


def test_narrowing_after_an_accepted_move(shop):
    """docs/files.md: "Roots may overlap, and be narrowed or widened"."""
    for name in ("eu/a.json", "us/a.json"):
        shop.land(name)
    shop.run()
    new = move(shop, "elsewhere")
    shop.land("eu/b.json")
    shop.run(source_roots=[str(new)], on_moved_root="accept")
    shop.check()
    shop.run(source_roots=[str(new / "eu")])
    shop.check()


def test_narrowing_after_the_project_was_moved(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop.land("eu/a.json")
    shop.run(source_roots=["landing"])
    project = tmp_path / "moved"
    project.mkdir()
    shop.landing.rename(project / "landing")
    shop.landing = project / "landing"
    monkeypatch.chdir(project)
    shop.land("eu/b.json")
    shop.run(source_roots=["landing"])
    shop.check()
    shop.run(source_roots=["landing/eu"])
    shop.check()


@pytest.mark.parametrize("config", [{}, {"source_patterns": ["json$"]}])
def test_widening_after_an_accepted_move(shop, config):
    """New files of the moved folder are planned at the place that it was moved away from."""
    shop.land("eu/a.json")
    shop.run(source_roots=[str(shop.landing / "eu")], **config)
    new = move(shop, "elsewhere")
    shop.land("eu/b.json")
    shop.run(source_roots=[str(new / "eu")], on_moved_root="accept", **config)
    shop.check()
    shop.land("eu/c.json")
    shop.land("us/a.json")
    shop.run(source_roots=[str(new)], **config)
    shop.check()


def test_widening_above_a_link_with_patterns(shop, tmp_path):
    """The link was the root; now the folder that it lies in is: its new files are silently left out."""
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "eu").symlink_to(shop.landing, target_is_directory=True)
    shop.land("a.json")
    shop.run(source_roots=[str(outer / "eu")])
    shop.land("b.json")
    shop.run(source_roots=[str(outer)], source_patterns=["json$"])
    shop.check()


def test_a_root_that_was_left_out_for_a_while_and_moved(shop, tmp_path):
    """docs/files.md: "Any other new root whose files are in already … stops the run"."""
    shop.land("a.json")
    shop.run()
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.json").write_text(json.dumps({"id": 50}))
    shop.expected[50] += 1
    shop.run(source_roots=[str(other)])
    shop.check()
    new = move(shop, "elsewhere")
    with pytest.raises(PenstockError, match="on_moved_root"):
        shop.run(source_roots=[str(other), str(new)])
    shop.check()


def test_a_relative_root_that_was_left_out_for_a_while(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop.land("a.json")
    shop.run(source_roots=["landing"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.json").write_text(json.dumps({"id": 50}))
    shop.expected[50] += 1
    shop.run(source_roots=["other"])
    project = tmp_path / "moved"
    project.mkdir()
    for folder in ("landing", "other"):
        (tmp_path / folder).rename(project / folder)
    monkeypatch.chdir(project)
    assert shop.run(source_roots=["landing", "other"]).nothing_new
    shop.check()


def test_two_roots_that_were_moved_into_one(shop, tmp_path):
    """`accept` takes the first root that matches: files of the second come in again, without a word."""
    shop.land("a.json")
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.json").write_text(json.dumps({"id": 50}))
    shop.expected[50] += 1
    shop.run(source_roots=[str(shop.landing), str(other)])
    both = tmp_path / "both"
    both.mkdir()
    (shop.landing / "a.json").rename(both / "a.json")
    (other / "b.json").rename(both / "b.json")
    try:
        shop.run(source_roots=[str(both)], on_moved_root="accept")
    except PenstockError:
        pass
    shop.check()


def test_a_moved_root_beside_a_folder_of_its_old_place(shop):
    """Two files get one name; one of them never comes in, and nothing says so."""
    shop.land("eu/a.json", at=1_700_000_000)
    shop.run()
    old = shop.landing
    new = move(shop, "elsewhere")
    shop.land("eu/b.json", at=1_700_000_001)
    shop.run(source_roots=[str(new)], on_moved_root="accept")
    shop.check()
    (old / "eu").mkdir(parents=True)
    (old / "eu" / "c.json").write_text(json.dumps({"id": 70}) + "\n")
    os.utime(old / "eu" / "c.json", (1_700_000_009, 1_700_000_009))
    (new / "eu" / "c.json").write_text(json.dumps({"id": 80}) + "\n")
    os.utime(new / "eu" / "c.json", (1_700_000_008, 1_700_000_008))
    shop.expected.update([70, 80])
    try:
        shop.run(source_roots=[str(new), str(old / "eu")])
    except PenstockError:
        return  # it is refused, which would do
    shop.check()


def test_a_file_uri_with_a_hash_names_no_other_folder(tmp_path):
    (tmp_path / "a#b").mkdir()
    try:
        root = normalize(f"file://{tmp_path}/a#b")
    except PenstockError:
        return
    assert root == f"{tmp_path}/a#b"


def test_a_file_uri_in_capitals(tmp_path, shop):
    shop.land()
    shop.run(source_roots=[f"FILE://{shop.landing}"])
    shop.check()


def test_the_home_of_a_user_that_is_not_there():
    with pytest.raises(PenstockError):
        FileSource.from_mapping({"source_roots": ["~nobody-of-this-name/landing"]})


def test_a_root_with_a_null_character():
    with pytest.raises(PenstockError):
        FileSource.from_mapping({"source_roots": ["/landing/a\0b"]})


def to_format_1(shop, root):
    """The table and its ledger as 0.1.0 would have written them."""
    for path in shop.sources.iterdir():
        head, *lines = path.read_text().splitlines()
        header = json.loads(head)
        for key in ("ledger", "written", "aliases", "model"):
            header.pop(key)
        header |= {"format_version": 1, "roots": [root]}
        lines = [json.loads(line) for line in lines]
        for line in lines:
            line["path"] = line["path"].replace(os.path.realpath(root), root)
        path.write_text("\n".join(map(json.dumps, [header, *lines])) + "\n")
    for path in (shop.table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                action["metaData"]["configuration"].pop("penstock.ledger", None)
        path.write_text("\n".join(map(json.dumps, actions)) + "\n")


def test_a_ledger_of_0_1_0_whose_link_leads_elsewhere(shop, tmp_path):
    """As `test_a_link_that_leads_elsewhere_keeps_its_name`, with records of format 1 below one of format 2."""
    link = tmp_path / "link"
    link.symlink_to(shop.landing, target_is_directory=True)
    shop.land("a.json")
    shop.run(source_roots=[str(link)])
    to_format_1(shop, str(link))
    assert shop.run(source_roots=[str(link)]).nothing_new
    shop.land("b.json")
    shop.run(source_roots=[str(link)])  # a plan of format 2, with link → landing
    shop.check()
    new = move(shop, "elsewhere")
    link.unlink()
    link.symlink_to(new, target_is_directory=True)
    shop.run(source_roots=[str(link)])
    shop.check()


def test_a_copy_that_the_patterns_leave_out_is_no_move(shop, tmp_path):
    shop.land("a.json")
    shop.run()
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy2(shop.landing / "a.json", other / "a.json")
    (other / "n.json").write_text(json.dumps({"id": 50}))
    shop.expected[50] += 1
    shop.run(source_roots=[str(shop.landing), str(other)], source_patterns=["n.json"])
    shop.check()
