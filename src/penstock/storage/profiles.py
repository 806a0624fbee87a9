"""The keys of an AWS profile. obstore does not read profiles, and delta-rs does so only for AWS's own endpoints.

Penstock reads `~/.aws/config` and `~/.aws/credentials` itself, and gives both clients the keys. A profile may have the
keys, or a `credential_process` that prints them. For every other kind (single sign-on, assumed roles) the `aws` command
is such a process.
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from penstock.config.store_options import for_delta, profile_of
from penstock.errors import PenstockError
from penstock.secrets import redact, remember

_PROCESS_SECONDS = 60
# A token in a file does not say when it expires. So the file is read again after this time.
_UNKNOWN_LIFE = timedelta(minutes=15)
# If one of them is given, no profile is looked at.
_OTHER_KEYS = frozenset(
    (
        "access_key_id", "secret_access_key", "skip_signature", "web_identity_token_file",
        "container_credentials_relative_uri", "container_credentials_full_uri",
    )
)  # fmt: skip
_OTHER_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True)
class Keys:
    """The keys of a profile; `expires` is None if they do not expire."""

    access_key_id: str
    secret_access_key: str
    token: str | None = None
    expires: datetime | None = None


@dataclass(frozen=True)
class Profile:
    """A profile in the AWS config files."""

    name: str
    settings: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Profile | None:
        """The profile that S3 is used with; None if the options or the environment have other credentials.

        An error if the options or AWS_PROFILE name a profile that does not exist.
        """
        named = profile_of(options)
        if named is None:
            if any(key.removeprefix("aws_") in _OTHER_KEYS for key in options):
                return None
            if any(os.environ.get(name) for name in _OTHER_VARIABLES):
                return None
            named = os.environ.get("AWS_PROFILE") or None
        settings = _settings(named or "default")
        if named is None:
            return cls("default", settings) if settings and _has_keys(settings) else None
        if settings is None:
            raise PenstockError(
                f"There is no AWS profile {named}",
                where=f"{_config_file()} and {_credentials_file()}",
                fix="Correct `profile` in `storage_options`, or AWS_PROFILE.",
            )
        return cls(named, settings)

    @property
    def region(self) -> str | None:
        return self.settings.get("region")

    def keys(self) -> Keys:
        """The keys; a `credential_process` runs again at each call."""
        if "aws_access_key_id" in self.settings and "aws_secret_access_key" in self.settings:
            token = self.settings.get("aws_session_token")
            return _kept(Keys(self.settings["aws_access_key_id"], self.settings["aws_secret_access_key"], token))
        if command := self.settings.get("credential_process"):
            return _kept(self._printed(command))
        raise PenstockError(
            f"The AWS profile {self.name} has neither keys nor a `credential_process`",
            where=str(_config_file()),
            fix=f"Add a profile whose process gets the keys: credential_process = aws configure export-credentials "
            f"--profile {self.name} --format process. Or use the environment: "
            f"eval $(aws configure export-credentials --profile {self.name} --format env).",
        )

    def _printed(self, command: str) -> Keys:
        try:
            process = subprocess.run(
                shlex.split(command), capture_output=True, text=True, timeout=_PROCESS_SECONDS, check=True
            )
            printed = json.loads(process.stdout)
            expires = printed.get("Expiration")
            return Keys(
                printed["AccessKeyId"],
                printed["SecretAccessKey"],
                printed.get("SessionToken"),
                None if expires is None else _moment(expires),
            )
        except subprocess.CalledProcessError as error:
            lines = (error.stderr or "").strip().splitlines()
            reason = lines[-1] if lines else f"it ended with {error.returncode}"
        except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
            # What the process printed may be keys.
            reason = {"JSONDecodeError": "it printed no JSON", "KeyError": f"its answer lacks {error}"}.get(
                type(error).__name__, str(error) if isinstance(error, OSError) else f"no answer in {_PROCESS_SECONDS} s"
            )
        raise PenstockError(
            f"The `credential_process` of the AWS profile {self.name} gave no keys: {redact(reason)}",
            where=str(_config_file()),
            fix="Run the command by hand, and log in again if it says so.",
        )


class Provider:
    """Gives obstore the keys of a profile. obstore asks again when the keys are about to expire."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def __call__(self) -> dict[str, Any]:
        # The file is read again: another tool may have written new keys.
        profile = Profile.of(self._options)
        if profile is None:
            raise PenstockError("The AWS profile is gone", where=str(_config_file()), fix="Run again.")
        keys = profile.keys()
        expires = keys.expires
        if expires is None and keys.token:
            expires = datetime.now(timezone.utc) + _UNKNOWN_LIFE
        return {
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
            "token": keys.token,
            "expires_at": expires,
        }


def with_keys(location: str, options: Mapping[str, str] | None) -> dict[str, str]:
    """The options for delta-rs at a location, with the keys of the profile if there is one."""
    found = for_delta(options or {})
    if location.partition("://")[0] not in ("s3", "s3a"):
        return found
    profile = Profile.of(options or {})
    if profile is None:
        return found
    keys = profile.keys()
    found |= {"aws_access_key_id": keys.access_key_id, "aws_secret_access_key": keys.secret_access_key}
    if keys.token:
        found["aws_session_token"] = keys.token
    return found | region_of(profile, found)


def region_of(profile: Profile, options: Mapping[str, str]) -> dict[str, str]:
    """The profile's region as an option, unless the options or the environment have a region."""
    given = {key.lower().removeprefix("aws_") for key in options}
    if not profile.region or given & {"region", "default_region"} or any(map(os.environ.get, _REGION_VARIABLES)):
        return {}
    return {"aws_region": profile.region}


def origin(options: Mapping[str, str]) -> str:
    """Where the credentials of S3 come from, for an error's text."""
    if profile_of(options) is None:
        if {"access_key_id", "secret_access_key"} & {key.removeprefix("aws_") for key in options}:
            return "`storage_options`"
        if os.environ.get("AWS_ACCESS_KEY_ID"):
            return "the environment (AWS_ACCESS_KEY_ID)"
    try:
        profile = Profile.of(options)
    except PenstockError:
        profile = None
    return f"the AWS profile {profile.name}" if profile else "the role of this machine or container"


def _has_keys(settings: Mapping[str, str]) -> bool:
    return "aws_access_key_id" in settings or "credential_process" in settings


def _kept(keys: Keys) -> Keys:
    remember({"secret_access_key": keys.secret_access_key, "session_token": keys.token or ""})
    return keys


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _settings(name: str) -> dict[str, str] | None:
    """The settings of a profile from both files; the credentials file wins, as in AWS's tools."""
    found: dict[str, str] | None = None
    sections = ((_config_file(), name if name == "default" else f"profile {name}"), (_credentials_file(), name))
    for path, section in sections:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            # The text of the error shows lines of the file.
            raise PenstockError(
                f"This AWS config file can't be read: {type(error).__name__}", where=str(path), fix="Correct the file."
            ) from None
        if parser.has_section(section):
            found = {**(found or {}), **dict(parser.items(section))}
    return found


def _config_file() -> Path:
    return Path(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()


def _credentials_file() -> Path:
    return Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials").expanduser()
