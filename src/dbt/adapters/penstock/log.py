"""dbt's log, without secrets."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from penstock.secrets import redact


class Log(AdapterLogger):
    """The adapter's log. Secrets in a line are hidden."""

    def debug(self, msg: Any, *args: Any) -> None:
        super().debug(_shown(msg, args))

    def info(self, msg: Any, *args: Any) -> None:
        super().info(_shown(msg, args))

    def warning(self, msg: Any, *args: Any) -> None:
        super().warning(_shown(msg, args))


def _shown(msg: Any, args: tuple[Any, ...]) -> str:
    return redact(str(msg) % args if args else str(msg))


logger = Log("Penstock")
