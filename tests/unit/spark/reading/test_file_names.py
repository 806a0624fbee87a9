"""Paths as Spark and Hadoop read them."""

from __future__ import annotations

from penstock.spark.reading.file_names import has_colon, is_like_a_pattern, path_of_uri, unreadable_names


def test_a_colon_in_the_name_of_a_file_on_disk_can_not_be_opened():
    assert list(unreadable_names(["/a:b/c.json", "/a/b:c.json", "s3://bucket/b:c.json"])) == ["/a/b:c.json"]


def test_the_colon_of_the_scheme_is_none():
    assert not has_colon("s3://bucket/a.json")
    assert has_colon("s3://bucket/a:b.json")
    assert has_colon("/a:b.json")


def test_characters_of_patterns():
    assert all(is_like_a_pattern(f"/a{char}") for char in "[]{}*?\\")
    assert not is_like_a_pattern("/a b%#'.json")


def test_uris_are_decoded_once():
    assert path_of_uri("file:///a/%2541.json") == "/a/%41.json"
    assert path_of_uri("file:/a%20b") == "/a b"
