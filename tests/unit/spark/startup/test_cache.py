"""The cache is used only where nobody else can write, and only what was published is run."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.config.session_settings import Repository
from penstock.errors import PenstockError
from penstock.spark.startup import cache, jars
from penstock.spark.startup.cache import COMPILED, JARS, is_trusted_file, trusted_folder

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def wide_umask() -> Any:
    before = os.umask(0o002)
    yield
    os.umask(before)


def test_it_is_made_for_its_owner_alone(base: Path, wide_umask: None) -> None:
    assert trusted_folder(COMPILED) == base / COMPILED
    assert (mode(base), mode(base / COMPILED)) == (0o700, 0o700)


def test_one_of_an_earlier_version_goes_on(base: Path, wide_umask: None) -> None:
    """Made by the umask; its jars are compared with their checksums, its compiled classes are not used again."""
    (base / JARS).mkdir(parents=True)
    assert mode(base) == 0o775
    trusted_folder(JARS)
    assert (mode(base), mode(base / JARS)) == (0o755, 0o755)


@pytest.mark.parametrize("loose", ["", COMPILED])
def test_one_that_others_may_write_is_refused(base: Path, loose: str) -> None:
    trusted_folder(COMPILED)
    (base / loose).chmod(0o770)
    with pytest.raises(PenstockError, match=r"may be written by others \(mode 770\)") as caught:
        trusted_folder(COMPILED)
    assert f"chmod go-w {base / loose}" in str(caught.value)
    assert "PENSTOCK_CACHE" in str(caught.value)


@pytest.mark.parametrize(("bits", "holds"), [(0o777, ""), (0o1777, JARS)])
def test_a_folder_for_all_is_left_as_it_is(base: Path, bits: int, holds: str) -> None:
    (base / holds).mkdir(parents=True)
    base.chmod(bits)
    with pytest.raises(PenstockError, match="may be written by others"):
        trusted_folder(JARS)
    assert mode(base) == bits


@as_root
@pytest.mark.parametrize("theirs", ["", COMPILED])
def test_one_of_another_user_is_refused_to_root_too(base: Path, theirs: str) -> None:
    trusted_folder(COMPILED)
    os.chown(base / theirs, NOBODY, NOBODY)
    with pytest.raises(PenstockError, match=rf"belongs to .*{NOBODY}, and this process runs as") as caught:
        trusted_folder(COMPILED)
    assert str(NOBODY) in str(caught.value)
    assert "chown" in str(caught.value)


@as_root
def test_one_that_root_made_is_used_by_others(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image brings it along."""
    trusted_folder(COMPILED)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    assert trusted_folder(COMPILED) == base / COMPILED


@as_root
def test_files_of_others_are_not_trusted(base: Path) -> None:
    file = trusted_folder(COMPILED) / "a.jsa"
    assert not is_trusted_file(file)
    file.touch(0o600)
    assert is_trusted_file(file)
    file.chmod(0o620)
    assert not is_trusted_file(file)
    file.chmod(0o600)
    os.chown(file, NOBODY, NOBODY)
    assert not is_trusted_file(file)


class Ivy:
    """What Ivy does, without a JVM or a network: each jar holds its name."""

    def __init__(self) -> None:
        self.calls = 0
        self.settings = ""
        self.content = {name: name.encode() for name in (f"{name}-{rev}.jar" for _, name, rev in jars._coordinates())}
        self.says, self.returncode = "", 0

    def __call__(self, command: list[str], **_: object) -> Any:
        self.calls += 1
        place = Path(command[command.index("-settings") + 1])
        self.settings = place.read_text()
        assert mode(place) == 0o600
        (place.parent / "jars").mkdir()
        for name, content in self.content.items():
            (place.parent / "jars" / name).write_bytes(content)
        return SimpleNamespace(returncode=self.returncode, stdout=self.says, stderr="")


@pytest.fixture
def ivy(base: Path, monkeypatch: pytest.MonkeyPatch) -> Ivy:
    ivy = Ivy()
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in ivy.content.items()}
    monkeypatch.setattr(jars, "_SHA256", sums)
    monkeypatch.setattr(subprocess, "run", ivy)
    return ivy


def test_jars_are_fetched_once(ivy: Ivy, base: Path) -> None:
    found = jars.delta_jars("/spark", "java")
    assert sorted(Path(jar).name for jar in found) == sorted(ivy.content)
    assert jars.delta_jars("/spark", "java") == found
    assert ivy.calls == 1
    assert [path.name for path in (base / JARS).iterdir()] == [Path(found[0]).parent.name]


def test_a_jar_that_was_changed_is_fetched_again(ivy: Ivy, caplog: pytest.LogCaptureFixture) -> None:
    jar = Path(jars.delta_jars("/spark", "java")[0])
    jar.write_bytes(b"not what was published")
    with caplog.at_level(logging.WARNING, "penstock.jars"):
        jars.delta_jars("/spark", "java")
    assert jar.read_bytes() == jar.name.encode()
    assert ivy.calls == 2
    assert f"{jar} is not as it was published" in caplog.text


def test_a_jar_beside_them_is_not_run(ivy: Ivy) -> None:
    found = jars.delta_jars("/spark", "java")
    Path(found[0]).with_name("more.jar").touch()
    assert jars.delta_jars("/spark", "java") == found


def test_a_mirror_that_gives_something_else_is_refused(ivy: Ivy, base: Path) -> None:
    name = next(iter(ivy.content))
    ivy.content[name] = b"something else"
    with pytest.raises(PenstockError, match="gave other files than were published") as caught:
        jars.delta_jars("/spark", "java")
    assert name in str(caught.value)
    assert not list((base / JARS).iterdir())


def test_all_versions_have_a_checksum() -> None:
    names = {
        f"{name.format(spark=spark)}-{revision}.jar"
        for spark in ("4.1", "4.2")
        for _, name, revision in jars._COORDINATES
    }
    assert names == set(jars._SHA256)


def test_a_version_without_a_checksum_is_refused(ivy: Ivy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_SHA256", {})
    with pytest.raises(PenstockError, match="no checksum"):
        jars.delta_jars("/spark", "java")
    assert ivy.calls == 0


def test_the_password_of_a_repository(ivy: Ivy, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches Ivy by a file that is gone afterwards, and what Ivy says of it is not kept."""
    monkeypatch.setattr(jars, "_realm", lambda url, jars: "Our Repository")
    ivy.returncode, ivy.says = 1, "401 for me:MaRk7-of-ivy at https://u:MaRk7-of-ivy@maven.example.com"
    repository = Repository.from_setting(
        {"url": "https://maven.example.com/x", "user": "me", "password": "MaRk7-of-ivy"}
    )
    with pytest.raises(PenstockError, match="could not be fetched") as caught:
        jars.delta_jars("/spark", "java", (repository,))
    assert (
        '<credentials host="maven.example.com" realm="Our Repository" username="me" passwd="MaRk7-of-ivy"/>'
        in ivy.settings
    )
    told = base / JARS / "fetch.log"
    assert mode(told) == 0o600
    assert "401" in told.read_text()
    assert [path for path in base.rglob("*") if path.is_file()] == [told]
    assert "MaRk7" not in told.read_text() + str(caught.value)


def test_a_cache_that_cant_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(PenstockError, match="no place to go"):
        jars.delta_jars("/spark", "java")
    assert cache.cache_folder() == tmp_path / "file" / "cache"
