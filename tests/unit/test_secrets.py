"""No message, log line or traceback holds a secret."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from penstock import secrets
from penstock.api import Lake, connect
from penstock.config.session_settings import Repository, SessionSettings
from penstock.delta.table import Table
from penstock.errors import PenstockError, StatementError, from_spark
from penstock.files import FileSource
from penstock.files.source import list_root
from penstock.lake.relations import Link
from penstock.secrets import HIDDEN, in_java_options, in_uri, is_secret, logger, redact, scrub
from penstock.storage import Storage
from penstock.windows.source import DatedPath

MARK = "MaRk7"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:MaRk7@bucket/a", f"s3://{HIDDEN}@bucket/a"),
        ("s3://key:MaRk7/with/slash@bucket/a", f"s3://{HIDDEN}@bucket/a"),
        ("https://MaRk7@host/maven2", f"https://{HIDDEN}@host/maven2"),
        ("at 'https://a.net/c?sv=1&sig=MaRk7%3D&se=2'", f"at 'https://a.net/c?sv=1&sig={HIDDEN}&se=2'"),
        (
            "https://b.net/k?X-Amz-Signature=MaRk7&X-Amz-Date=1",
            f"https://b.net/k?X-Amz-Signature={HIDDEN}&X-Amz-Date=1",
        ),
        ("jdbc:postgresql://h/d?user=u&password=MaRk7", f"jdbc:postgresql://h/d?user=u&password={HIDDEN}"),
        ("AccountName=a;AccountKey=MaRk7==;X=1", f"AccountName=a;AccountKey={HIDDEN};X=1"),
        ("-Djavax.net.ssl.trustStorePassword=MaRk7 -Dx=1", f"-Djavax.net.ssl.trustStorePassword={HIDDEN} -Dx=1"),
        ("sc://host:15002/;token=MaRk7;user_id=a", f"sc://host:15002/;token={HIDDEN};user_id=a"),
    ],
)
def test_parts_that_hold_a_secret_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/lake",
        "s3://bucket/2026-01-01T10:00:00/a.json",
        "http://127.0.0.1:9000/bucket/a@b.json",
        "/landing/token=abc/part-1.parquet",
        "s3://bucket/design=1&x",
        "select a = 'b', token from s.t where token = 'x'",
    ],
)
def test_nothing_else_is_hidden(text: str) -> None:
    assert redact(text) == text
    assert in_uri(text) is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("secret_access_key", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("azure_storage_sas_token", True),
        ("account_key", True),
        ("spark.hadoop.fs.s3a.session.token", True),
        ("fs.azure.account.key.shop.dfs.core.windows.net", True),
        ("fs.azure.sas.fixed.token", True),
        ("spark.ssl.keyPassword", True),
        ("service_account_key", True),
        ("region", False),
        ("fs.s3a.aws.credentials.provider", False),
        ("aws_web_identity_token_file", False),
        ("google_application_credentials", False),
        ("account_name", False),
        ("SECRET_NAME", False),
        ("spark.redaction.regex", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) == secret


def test_known_values_are_hidden_in_every_spelling() -> None:
    secrets.remember(
        {"secret_access_key": "ab/cd+ef==MaRk7", "region": "eu-central-1", "max_tokens": 4096, "use_token": True}
    )
    secrets.remember({"service_account_key": '{"private_key": "-----BEGIN MaRk7-of-json-----", "type": "x"}'})
    for text in ("ab/cd+ef==MaRk7", "ab%2Fcd%2Bef%3D%3DMaRk7", "-----BEGIN MaRk7-of-json-----"):
        assert redact(f"error at {text}!") == f"error at {HIDDEN}!"
    assert redact("eu-central-1 true 4096") == "eu-central-1 true 4096"


def test_a_short_secret_is_a_word_of_its_own() -> None:
    secrets.remember({"password": "zebra"})
    assert redact("zebra, zebras and 'zebra'") == f"{HIDDEN}, zebras and '{HIDDEN}'"


def test_java_options() -> None:
    assert in_java_options("-Xmx1g -Da.password=x -Db=1 '-Dc.secret=a b'") == {"a.password": "x", "c.secret": "a b"}


class FromJava(Exception):
    """It asks for its text each time, as py4j's does."""

    def __str__(self) -> str:
        return f"s3a://key:{MARK}@bucket is not there"


def fail() -> None:
    try:
        try:
            Path(f"/no/such/place?sig={MARK}").read_text()
        except OSError as error:
            raise FromJava from error
    except FromJava as error:
        raise PenstockError(f"At s3://u:{MARK}@b", where=f"s3://u:{MARK}@b", fix=f"Use s3://u:{MARK}@c") from error


def test_an_error_and_all_behind_it_hold_none() -> None:
    with pytest.raises(PenstockError) as caught:
        fail()
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    assert MARK not in shown
    assert "FromJava" in shown
    assert isinstance(caught.value.__cause__, FromJava)
    assert MARK.encode() not in pickle.dumps(caught.value.args)


def test_an_error_of_spark_holds_none() -> None:
    error = from_spark(Exception(f"[X] line 1 at s3a://u:{MARK}@b"), f"select * from csv.`s3a://u:{MARK}@b`")
    assert isinstance(error, StatementError)
    assert MARK not in str(error) + repr(vars(error))


def test_an_error_without_secrets_stays_the_same() -> None:
    error = FileNotFoundError(2, "No such file", "/a/b")
    scrub(error)
    assert (error.errno, error.filename, type(error)) == (2, "/a/b", FileNotFoundError)


def test_a_log_record_holds_none(caplog: pytest.LogCaptureFixture) -> None:
    log = logger("penstock.test")
    with caplog.at_level(logging.DEBUG, "penstock.test"):
        try:
            raise ValueError(f"x?sig={MARK}")
        except ValueError:
            log.debug("at %s", f"s3://u:{MARK}@b", exc_info=True)
    assert f"at s3://{HIDDEN}@b" in caplog.text
    assert "Traceback" in caplog.text
    assert MARK not in caplog.text


def test_every_logger_of_the_engine_hides_secrets() -> None:
    for path in Path("src/penstock").rglob("*.py"):
        if path.name != "secrets.py":
            assert 'getLogger("penstock' not in path.read_text(), path
    for path in Path("src/dbt/adapters/penstock").rglob("*.py"):
        if path.name != "log.py":
            assert "AdapterLogger(" not in path.read_text(), path


@pytest.mark.parametrize(
    "call",
    [
        lambda uri, options: list_root(uri, options),
        lambda uri, options: Table.open(uri, options),
        lambda uri, options: Storage(uri, options).write("a", b""),
        lambda uri, options: Link.from_bytes(b"{", uri),
    ],
)
def test_a_path_that_an_older_version_kept_is_shown_without_its_password(call: Any) -> None:
    """It took credentials inside of a URI, and wrote them to plans and links."""
    options = {"endpoint": "http://127.0.0.1:1", "allow_http": "true", "region": "us-east-1", "skip_signature": "true"}
    with pytest.raises(PenstockError) as caught:
        call(f"s3://key:{MARK}@bucket/landing", options | {"max_retries": "0", "retry_timeout": "1s"})
    assert HIDDEN in str(caught.value)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_secrets_that_python_gives_are_known(tmp_path: Path) -> None:
    Lake(str(tmp_path), settings=SessionSettings(spark_config={"spark.hadoop.fs.s3a.secret.key": "given-to-python"}))
    FileSource.from_mapping({"source_roots": ["/a"], "source_options": {"my.password": "given-to-a-reader"}})
    assert redact("given-to-python, given-to-a-reader") == f"{HIDDEN}, {HIDDEN}"


CREDENTIALS = ("s3://key:MaRk7@bucket/lake", "https://a.net/c?sv=1&sig=MaRk7", "https://MaRk7@host/a")


@pytest.mark.parametrize("uri", CREDENTIALS)
def test_a_uri_with_credentials_is_refused_unseen(uri: str) -> None:
    messages = []
    for call in (
        lambda: Lake(uri),
        lambda: connect(uri),
        lambda: FileSource.from_mapping({"source_roots": [uri]}),
        lambda: SessionSettings.from_mapping({"repositories": [uri]}),
        lambda: SessionSettings.from_mapping({"jars": [uri]}),
        lambda: SessionSettings.from_mapping({"remote": uri}),
    ):
        with pytest.raises(PenstockError, match="holds credentials") as caught:
            call()
        messages.append(str(caught.value))
    assert "`storage_options`" in messages[0]
    assert "env_var" in messages[0]
    assert MARK not in "".join([*messages, *DatedPath.problems(f"{uri}/%Y")])
    assert "holds credentials" in DatedPath.problems(f"{uri}/%Y")[0]


def test_a_wrong_session_shows_no_value() -> None:
    wrong = {"spark_config": f"a={MARK}", "jars": MARK, "repositories": MARK, "master": {"a": MARK}, "remote": [MARK]}
    with pytest.raises(PenstockError) as caught:
        SessionSettings.from_mapping(wrong)
    assert MARK not in str(caught.value)


def test_settings_show_no_value() -> None:
    settings = SessionSettings.from_mapping(
        {
            "spark_config": {"spark.hadoop.fs.s3a.secret.key": MARK},
            "repositories": ["https://a.net", {"url": "https://b.net", "user": "me", "password": MARK}],
        }
    )
    assert settings.repositories[1] == Repository("https://b.net", "me", MARK)
    assert MARK not in repr(settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "https://b.net", "user": "me"}, "needs both `user` and `password`, or neither"),
        ({"url": "https://b.net", "pasword": MARK}, "did you mean `password`?"),
        ({"user": "me", "password": MARK}, "blocks with a `url`"),
        (3, "not a number"),
    ],
)
def test_a_wrong_repository(given: object, message: str) -> None:
    (problem,) = Repository.problems(given) if message != "did you mean `password`?" else Repository.problems(given)[:1]
    assert message in problem
    assert MARK not in problem


def test_an_option_that_executors_would_show_is_refused() -> None:
    config = {"spark.executor.extraJavaOptions": f"-Xss1m -Dmy.password={MARK}"}
    with pytest.raises(PenstockError, match=r"my\.password") as caught:
        SessionSettings.from_mapping({"spark_config": config})
    assert MARK not in str(caught.value)
    SessionSettings.from_mapping({"spark_config": {"spark.executor.extraJavaOptions": "@/etc/spark/options"}})


def test_the_environments_secrets_are_hidden(tmp_path: Path) -> None:
    code = (
        "import os, penstock; from penstock.secrets import redact\n"
        f"penstock.connect({str(tmp_path)!r})\n"
        "print(redact('at ' + os.environ['AWS_SECRET_ACCESS_KEY'] + ' in ' + os.environ['AWS_REGION']))"
    )
    environment = {"AWS_SECRET_ACCESS_KEY": f"environment-{MARK}", "AWS_REGION": "eu-central-1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"at {HIDDEN} in eu-central-1\n"
