"""Which files Spark reads by one call, and under which paths."""

from __future__ import annotations

from penstock.spark.reading.groups import FileGroup, grouped


def same(path: str) -> str:
    return path


def test_files_are_grouped_by_root_and_by_folder_columns():
    paths = ["/in/a.json", "/in/day=1/b.json", "/in/day=2/c.json", "/other/d.json"]
    assert grouped(paths, ["/in", "/other"], same) == [
        FileGroup("/in", (), ("/in/a.json",)),
        FileGroup("/in", ("day",), ("/in/day=1/b.json", "/in/day=2/c.json")),
        FileGroup("/other", (), ("/other/d.json",)),
    ]


def test_a_file_below_two_roots_belongs_to_the_nearer_one():
    assert [group.root for group in grouped(["/in/eu/a.json"], ["/in", "/in/eu"], same)] == ["/in/eu"]


def test_a_file_below_no_root_has_its_folder_as_root():
    assert [group.root for group in grouped(["/elsewhere/a.json"], ["/in"], same)] == ["/elsewhere"]


def test_paths_are_spelled_for_spark():
    assert grouped(["s3://b/a.json"], ["s3://b"], lambda path: path.replace("s3:", "s3a:"))[0].files == (
        "s3a://b/a.json",
    )


def test_patterns_are_escaped_beside_other_files_only():
    alone = FileGroup("/in", (), ("/in/[a].json",))
    assert alone.has_patterns
    assert not alone.is_escaped
    assert alone.paths == ["/in/[a].json"]
    both = FileGroup("/in", (), ("/in/[a].json", "/in/b.json"))
    assert both.paths == ["/in/\\[a\\].json", "/in/b.json"]


def test_a_pattern_with_a_colon_is_read_alone():
    groups = grouped(["/in/a.json", "/in/x:y/[b].json", "/in/x:y/c.json"], ["/in"], same)
    assert [group.files for group in groups] == [("/in/a.json", "/in/x:y/c.json"), ("/in/x:y/[b].json",)]
