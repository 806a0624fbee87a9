"""Removes secrets from text that is shown or stored: known secret values, and the credentials in URIs.

`PenstockError` redacts its own message and the errors that caused it. `logger` redacts every log record.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"

_NAME = re.compile(
    r"secret|passw|passphrase|\bpwd\b|token|credential|signature|bearer|"
    r"(?:access|account|master|api|private|encryption|customer|sas|shared|service_account)[._-]?key|(?:^|[._-])sas(?:$|[._-])",
    re.IGNORECASE,
)
# Names with the same words whose values are paths, types or switches: messages need these values.
_NO_SECRET = re.compile(
    r"(?:file|path|folder|uri|url|endpoint|provider|type|class|enabled|expiry|expiration|ttl|algorithm|regex|"
    r"name|dir|helper|version|size|length|application_credentials)$|token[._-]?service",
    re.IGNORECASE,
)
_SWITCHES = ("true", "false", "none", "null", "")
_SHORTEST = 4
# A shorter value is hidden only where it is a whole word, because it may be a part of other words.
_LONG = 12
_JAVA_OPTIONS = re.compile(r"java(?:Options|_options)$", re.IGNORECASE)
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)"
# `user:password@`. A password may contain slashes. The container in `abfss://container@account` has no colon.
_USER_AND_PASSWORD = re.compile(
    _SCHEME + r"(?:[^/\s:@'\"]*:[^\s/'\"]*@|[^/\s:@'\"]*:(?!\d{1,5}(?:[/?#]|$))[^\s@'\"]*@)"
)
# In a web address, a token may stand before the host without a user.
_USER_OF_WEB = re.compile(r"(?P<scheme>https?://)[^/\s@'\"]+@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"(?P<name>[?&;](?:[\w.-]*(?:signature|token|passw|secret|credential|access[._-]?key|api[._-]?key)[\w.-]*|sig|pwd)=)"
    r"[^&;\s'\"#<>\\)]+",
    re.IGNORECASE,
)
# The form of connection strings and of Java options.
_ASSIGNED = re.compile(
    r"(?P<name>(?:^|[;\s'\"]|-D)(?:[\w.-]*(?:passw|secret)[\w.-]*|pwd|accountkey|sharedaccess(?:signature|key))=)"
    r"[^;&\s'\"]+",
    re.IGNORECASE,
)
_TEXTS_OF_OS_ERRORS = ("filename", "filename2", "strerror")


def is_secret(name: str) -> bool:
    """Whether an option with this name holds a secret, judged by the words in the name.

    >>> is_secret("fs.azure.account.key.shop.dfs.core.windows.net"), is_secret("fs.s3a.aws.credentials.provider")
    (True, False)
    """
    return _NAME.search(name) is not None and _NO_SECRET.search(name) is None


class _Known:
    """The secret values that are known, and the pattern that finds them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        with self._lock:
            spellings = {spelling for value in values for spelling in _spellings(value)}
            if spellings <= self._values:
                return
            self._values |= spellings
            # The longest value first, because one value may begin with another.
            ordered = sorted(self._values, key=len, reverse=True)
            self.pattern = re.compile("|".join(map(_matcher, ordered)))


_known = _Known()


def remember(options: Mapping[str, Any]) -> None:
    """From now on, hide the values of the options whose names mark them as secret."""
    _known.add(_values(options))


def remember_value(value: str | None) -> None:
    """From now on, hide this value."""
    _known.add([value] if value and _may_be_secret(value) else ())


def remember_environment() -> None:
    """From now on, hide the secrets in environment variables, such as AWS_SECRET_ACCESS_KEY."""
    remember(os.environ)


def redact(text: str) -> str:
    """The text with every secret replaced by `***`.

    >>> redact("s3://me:mine@bucket/a and https://x.net/b?sv=1&sig=abc")
    's3://***@bucket/a and https://x.net/b?sv=1&sig=***'
    """
    if "://" in text:
        text = _USER_AND_PASSWORD.sub(rf"\g<scheme>{HIDDEN}@", text)
        text = _USER_OF_WEB.sub(rf"\g<scheme>{HIDDEN}@", text)
    if "=" in text:
        text = _PARAMETER.sub(rf"\g<name>{HIDDEN}", text)
        text = _ASSIGNED.sub(rf"\g<name>{HIDDEN}", text)
    pattern = _known.pattern
    return text if pattern is None else pattern.sub(HIDDEN, text)


def in_uri(uri: str) -> str | None:
    """The kind of credentials in a URI, in words that do not show them; None if the URI has no credentials."""
    if "://" not in uri:
        return None
    if _USER_AND_PASSWORD.match(uri):
        return "a user and a password"
    if _USER_OF_WEB.match(uri):
        return "a user"
    found = _PARAMETER.search(uri)
    return None if found is None else f"the parameter `{found['name'][1:-1]}`"


def in_java_options(options: str) -> dict[str, str]:
    """The system properties in a string of Java options whose names mark them as secret, with their values."""
    try:
        parts = shlex.split(options)
    except ValueError:
        parts = options.split()
    given = dict(part[2:].split("=", 1) for part in parts if part.startswith("-D") and "=" in part)
    return {name: value for name, value in given.items() if is_secret(name)}


def scrub(error: BaseException | None) -> None:
    """Remove the secrets from a foreign error and from all its causes, in place: a traceback prints every one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _shows_secret(error):
            error.args = tuple(_redacted(part) for part in error.args)
            for key in (*_TEXTS_OF_OS_ERRORS, *vars(error)):
                value = getattr(error, key, None)
                if isinstance(value, str):
                    setattr(error, key, redact(value))
            if _shows_secret(error):
                _redact_class(error)
        error = error.__cause__ or error.__context__


def logger(name: str) -> logging.Logger:
    """The logger with this name. It removes secrets from every record."""
    found = logging.getLogger(name)
    if _redact_record not in found.filters:
        found.addFilter(_redact_record)
    return found


def _values(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _values(value)
        elif _JAVA_OPTIONS.search(str(name)):
            yield from _values(in_java_options(str(value)))
        elif is_secret(str(name)) and isinstance(value, (str, int)):
            text = str(value)
            if text.lstrip().startswith("{"):
                yield from _in_json(text)
            if _may_be_secret(text):
                yield text


def _may_be_secret(value: str) -> bool:
    """Whether a value may be hidden. Hiding a switch or a small number would garble unrelated messages."""
    return value.lower() not in _SWITCHES and len(value) >= (_LONG // 2 if value.isdigit() else _SHORTEST)


def _in_json(text: str) -> Iterator[str]:
    """The secrets in a JSON text, such as the key of a service account."""
    try:
        content = json.loads(text)
    except ValueError:
        return
    if isinstance(content, dict):
        yield from _values(content)


def _spellings(value: str) -> set[str]:
    """The spellings of a value in URLs, in JSON and in Python's `repr`."""
    stripped = value.strip()
    return {value, stripped, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]}


def _matcher(value: str) -> str:
    if len(value) >= _LONG:
        return re.escape(value)
    return rf"(?<!\w){re.escape(value)}(?!\w)"


def _redacted(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def _shows_secret(error: BaseException) -> bool:
    text = str(error)
    return redact(text) != text or any(_redacted(part) != part for part in error.args if isinstance(part, str))


def _redact_class(error: BaseException) -> None:
    """Redact an error that builds its text each time that it is shown, for example by a call to Java."""
    kind = type(error)

    def shown(self: BaseException) -> str:
        return redact(kind.__str__(self))

    names = {"__str__": shown, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    try:
        error.__class__ = type(kind.__name__, (kind,), names)
    except TypeError:  # a built-in class, whose text is in `args`
        error.args = (redact(str(error)),)


def _redact_record(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    hidden = redact(text)
    if hidden != text:
        record.msg, record.args = hidden, ()
    if record.exc_info and not record.exc_text:
        record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
    return True


def credentials_problem(location: str) -> str | None:
    """A sentence about the credentials in a location and where to put them; None if the location has none."""
    found = in_uri(location)
    if found is None:
        return None
    return (
        f"holds credentials ({found}), which every log, plan and table history would show. Remove them from the URI "
        "and put them in `storage_options` (for Spark also in `session.spark_config`), as `{{ env_var('…') }}`"
    )
