"""Secrets are taken out of all that is shown or kept: the values that are known, and the parts of a URI that hold one.

`PenstockError` does it for its message and for the errors that it comes from, `logger` for all that is logged.
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
# Names of the same words whose values are places, kinds and switches: messages need them.
_NO_SECRET = re.compile(
    r"(?:file|path|folder|uri|url|endpoint|provider|type|class|enabled|expiry|expiration|ttl|algorithm|regex|"
    r"name|dir|helper|version|size|length|application_credentials)$|token[._-]?service",
    re.IGNORECASE,
)
_SWITCHES = ("true", "false", "none", "null", "")
_SHORTEST = 4
# A shorter value is looked for as a word of its own: it may be a part of many.
_LONG = 12
_OPTIONS_OF_JAVA = re.compile(r"java(?:Options|_options)$", re.IGNORECASE)
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)"
# `user:password@`, where a password may hold slashes; the container in `abfss://container@account` has no colon.
_USER_AND_PASSWORD = re.compile(
    _SCHEME + r"(?:[^/\s:@'\"]*:[^\s/'\"]*@|[^/\s:@'\"]*:(?!\d{1,5}(?:[/?#]|$))[^\s@'\"]*@)"
)
# A token may stand alone before the host of a web address.
_USER_OF_WEB = re.compile(r"(?P<scheme>https?://)[^/\s@'\"]+@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"(?P<name>[?&;](?:[\w.-]*(?:signature|token|passw|secret|credential|access[._-]?key|api[._-]?key)[\w.-]*|sig|pwd)=)"
    r"[^&;\s'\"#<>\\)]+",
    re.IGNORECASE,
)
# As connection strings and Java's options have them.
_ASSIGNED = re.compile(
    r"(?P<name>(?:^|[;\s'\"]|-D)(?:[\w.-]*(?:passw|secret)[\w.-]*|pwd|accountkey|sharedaccess(?:signature|key))=)"
    r"[^;&\s'\"]+",
    re.IGNORECASE,
)
_TOLD_BY_ERRORS = ("filename", "filename2", "strerror")


def is_secret(name: str) -> bool:
    """Whether an option of this name holds a secret, by the words in it.

    >>> is_secret("fs.azure.account.key.shop.dfs.core.windows.net"), is_secret("fs.s3a.aws.credentials.provider")
    (True, False)
    """
    return _NAME.search(name) is not None and _NO_SECRET.search(name) is None


class _Known:
    """The values that must not be shown, and the pattern that finds them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        with self._lock:
            spelled = {spelling for value in values for spelling in _spellings(value)}
            if spelled <= self._values:
                return
            self._values |= spelled
            # The longest first: one may begin with another.
            ordered = sorted(self._values, key=len, reverse=True)
            self.pattern = re.compile("|".join(map(_matcher, ordered)))


_known = _Known()


def remember(options: Mapping[str, Any]) -> None:
    """Hide, from now on, the values of those options whose names say that they are secret."""
    _known.add(_values(options))


def remember_value(value: str | None) -> None:
    """Hide, from now on, a value that is known to be a secret."""
    _known.add([value] if value and _may_be_secret(value) else ())


def remember_environment() -> None:
    """Hide, from now on, the secrets in the environment, such as AWS_SECRET_ACCESS_KEY."""
    remember(os.environ)


def redact(text: str) -> str:
    """The text with `***` in place of each secret.

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
    """The kind of credentials that a URI holds, in words that do not show them; None where it holds none."""
    if "://" not in uri:
        return None
    if _USER_AND_PASSWORD.match(uri):
        return "a user and a password"
    if _USER_OF_WEB.match(uri):
        return "a user"
    found = _PARAMETER.search(uri)
    return None if found is None else f"the parameter `{found['name'][1:-1]}`"


def in_java_options(options: str) -> dict[str, str]:
    """The system properties in Java's options whose names are those of secrets, with their values."""
    try:
        parts = shlex.split(options)
    except ValueError:
        parts = options.split()
    given = dict(part[2:].split("=", 1) for part in parts if part.startswith("-D") and "=" in part)
    return {name: value for name, value in given.items() if is_secret(name)}


def scrub(error: BaseException | None) -> None:
    """Take the secrets out of an error of others, and of those behind it, in place: a traceback prints them all."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _shows(error):
            error.args = tuple(_redacted(part) for part in error.args)
            for key in (*_TOLD_BY_ERRORS, *vars(error)):
                value = getattr(error, key, None)
                if isinstance(value, str):
                    setattr(error, key, redact(value))
            if _shows(error):
                _hide(error)
        error = error.__cause__ or error.__context__


def logger(name: str) -> logging.Logger:
    """The logger of this name, whose records hold no secret."""
    found = logging.getLogger(name)
    if _redact_record not in found.filters:
        found.addFilter(_redact_record)
    return found


def _values(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _values(value)
        elif _OPTIONS_OF_JAVA.search(str(name)):
            yield from _values(in_java_options(str(value)))
        elif is_secret(str(name)) and isinstance(value, (str, int)):
            text = str(value)
            if text.lstrip().startswith("{"):
                yield from _in_json(text)
            if _may_be_secret(text):
                yield text


def _may_be_secret(value: str) -> bool:
    """Whether to hide a value: a switch or a small number would be hidden wherever messages have such a word."""
    return value.lower() not in _SWITCHES and len(value) >= (_LONG // 2 if value.isdigit() else _SHORTEST)


def _in_json(text: str) -> Iterator[str]:
    """A service account's key is a JSON text with the secrets in it."""
    try:
        content = json.loads(text)
    except ValueError:
        return
    if isinstance(content, dict):
        yield from _values(content)


def _spellings(value: str) -> set[str]:
    """As URLs, JSON texts and Python's `repr` show it."""
    stripped = value.strip()
    return {value, stripped, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]}


def _matcher(value: str) -> str:
    if len(value) >= _LONG:
        return re.escape(value)
    return rf"(?<!\w){re.escape(value)}(?!\w)"


def _redacted(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def _shows(error: BaseException) -> bool:
    text = str(error)
    return redact(text) != text or any(_redacted(part) != part for part in error.args if isinstance(part, str))


def _hide(error: BaseException) -> None:
    """Of an error that asks for its text, in Java for example, each time that it is shown."""
    kind = type(error)

    def shown(self: BaseException) -> str:
        return redact(kind.__str__(self))

    names = {"__str__": shown, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    try:
        error.__class__ = type(kind.__name__, (kind,), names)
    except TypeError:  # of a built-in class, whose text is in `args`
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
    """A line on the credentials that a location holds, and on where they belong; None where it holds none."""
    found = in_uri(location)
    if found is None:
        return None
    return (
        f"holds credentials ({found}), which every log, plan and table history would show: write the URI without them, "
        "and give them in `storage_options` (for Spark as well in `session.spark_config`), as `{{ env_var('…') }}`"
    )
