"""The profile: all errors in one message, and no secret shown."""

from __future__ import annotations

import pytest
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.penstock.credentials import PenstockCredentials

GOOD = {"type": "penstock", "root": "./lake", "schema": "main"}


def test_a_relative_root_is_the_projects() -> None:
    PenstockCredentials.validate(GOOD)
    credentials = PenstockCredentials.from_dict({"root": "./lake", "schema": "main"})
    assert credentials.lake("/project").root == "/project/lake"


def test_every_error_is_in_one_message_with_the_nearest_name() -> None:
    with pytest.raises(ValidationError) as caught:
        PenstockCredentials.validate(
            {**GOOD, "root": "", "shcema": "x", "storage_options": 3, "session": {"memroy": "4g", "memory": "lots"}}
        )
    message = str(caught.value)
    for part in (
        "`root` is missing",
        "`shcema` is not known: did you mean `schema`?",
        "`storage_options`",
        "did you mean `memory`?",
        "'lots'",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("schema", "a/b", "`schema`"),
        ("schema", "a-b", "letters, digits and underscores"),
        ("root", "file://./lake", "file:///"),
        ("session", {"remote": "sc://x"}, "`session.remote`"),
    ],
)
def test_what_the_first_statement_would_stumble_over_is_refused(key: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PenstockCredentials.validate({**GOOD, key: value})


def test_a_database_is_refused() -> None:
    with pytest.raises(ValidationError, match="schemas only"):
        PenstockCredentials.validate({**GOOD, "database": "other"})


def test_no_secret_is_shown() -> None:
    secret = "hunter2"
    credentials = PenstockCredentials.from_dict(
        {
            "root": "s3://bucket/lake",
            "schema": "main",
            "storage_options": {"AWS_SECRET_ACCESS_KEY": secret},
            "session": {"spark_config": {"spark.hadoop.fs.s3a.secret.key": secret}},
        }
    )
    assert secret not in repr(credentials)
    assert secret not in str(dict(credentials.connection_info(with_aliases=True)))
