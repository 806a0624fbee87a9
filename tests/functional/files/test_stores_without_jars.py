"""Files on a store that this Spark has no class for: one clear error, soon; or its jars come when they are needed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from penstock import PenstockError
from penstock.api import connect
from penstock.spark.startup.jars import delta_jars
from penstock.spark.startup.java import find_java, find_spark_home
from penstock.spark.startup.local_disk import _compile
from tests.conftest import SESSION, SHORT_SESSION
from tests.s3_server import serve

LACKING = """
package test;

import java.net.URI;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

public class Lacking extends RawLocalFileSystem {
  public URI getUri() { return URI.create("s3a://bucket"); }
  public boolean exists(Path path) { throw new NoClassDefFoundError("software/amazon/awssdk/Thing"); }
  public FileStatus getFileStatus(Path path) { throw new NoClassDefFoundError("software/amazon/awssdk/Thing"); }
}
"""
LATER = """
import json, sys
from penstock.api import connect
from tests.s3_server import serve

with serve() as s3:
    s3.put("in/1.json", b'{"id": 1}')
    connect(sys.argv[1], session=json.loads(sys.argv[2])).sql("create table a.t as select 7 as id")
    lake = connect(sys.argv[1], session=json.loads(sys.argv[2]), storage_options=s3.options)
    lake.ingest("b.t", source_roots=["s3://bucket/in"], safety_buffer_seconds=0)
    lake.sql("select id from b.t union all select id from a.t").show()
    on_s3 = connect("s3://bucket/lake", session=json.loads(sys.argv[2]), storage_options=s3.options)
    on_s3.sql("create table b.u as select 5 as id")
    print([row.id for row in on_s3.sql("select id from b.u").collect()])
"""
RUN = """
import json, sys
from penstock import PenstockError
from penstock.api import connect
from tests.s3_server import serve

root, settings = sys.argv[1], json.loads(sys.argv[2])
with serve() as s3:
    s3.put("in/1.json", b'{"id": 1}')
    lake = connect(root, session=settings, storage_options=s3.options)
    try:
        lake.ingest("b.t", source_roots=["s3://bucket/in"], safety_buffer_seconds=0)
    except PenstockError as error:
        print(error)
"""


@pytest.mark.parametrize("on_bad_file", ["fail", "quarantine"])
def test_without_the_file_system_nothing_comes_in_and_no_file_is_at_fault(tmp_path: Path, on_bad_file: str) -> None:
    with serve() as s3:
        s3.put("in/1.json", json.dumps({"id": 1}).encode())
        # Whoever names jars gets no others.
        jars = delta_jars(find_spark_home(), find_java())
        lake = connect(str(tmp_path), session={**SESSION, "jars": jars}, storage_options=s3.options)
        with pytest.raises(PenstockError) as error:
            lake.ingest("b.t", source_roots=["s3://bucket/in"], safety_buffer_seconds=0, on_bad_file=on_bad_file)
    said = str(error.value)
    assert "org.apache.hadoop.fs.s3a.S3AFileSystem" in said
    assert "s3a://bucket" in said
    assert "org.apache.hadoop:hadoop-aws:" in said
    assert "`spark.jars.packages`" in said
    assert not (tmp_path / "b" / "t" / "_checkpoint").exists()


def test_a_class_that_is_missed_late_does_not_leave_spark_waiting(tmp_path: Path) -> None:
    """Spark asks whether its paths exist in threads that such an error ends, and waits for them for ever."""
    java, home = find_java(), find_spark_home()
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "Lacking.java").write_text(LACKING)
    _compile(str(tmp_path / "java"), home, java, [])
    with zipfile.ZipFile(tmp_path / "lacking.jar", "w") as jar:
        jar.write(tmp_path / "java" / "test" / "Lacking.class", "test/Lacking.class")
    settings = {
        **SHORT_SESSION,
        "memory": "1g",
        "jars": [*delta_jars(home, java), str(tmp_path / "lacking.jar")],
        "spark_config": {**SHORT_SESSION["spark_config"], "spark.hadoop.fs.s3a.impl": "test.Lacking"},
    }
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "lake"), json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    assert "Spark has no class software.amazon.awssdk.Thing" in done.stdout
    assert "software.amazon.awssdk:bundle" in done.stdout
    assert time.monotonic() - begun < 240


def test_the_jars_of_a_store_come_when_it_is_first_named(tmp_path: Path) -> None:
    """Spark runs for a lake on a disk already; then come files, and then a lake, on S3."""
    done = subprocess.run(
        [sys.executable, "-c", LATER, str(tmp_path / "lake"), json.dumps({**SHORT_SESSION, "memory": "1g"})],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "|  1|" in done.stdout
    assert "|  7|" in done.stdout
    assert done.stdout.splitlines()[-1] == "[5]"
