"""Microbatch models: what dbt knows of their windows, given to the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from dbt_common.exceptions import DbtRuntimeError
from jinja2 import nodes

from dbt.adapters.penstock.connections import PenstockAdapterResponse
from penstock.files import FileSource, Listings, Model
from penstock.sql import quoting
from penstock.sql import statement as sql
from penstock.storage import given_location
from penstock.windows import DatedPath, FileSelect, Outcome, Request, Target, Window, WindowSettings

_OF_THE_BATCH = "__dbt_internal_microbatch_event_time_"
_CORE = ("dbt", "dbt_spark", "dbt_penstock")


def problems(node: Any) -> list[str]:
    """All that is wrong with the windows of a model, and that can be told without Spark."""
    config = node.config.to_dict()
    found = WindowSettings.problems(config)
    names = sql.selected(node.compiled_code or "")
    event_time = quoting.plain(str(config.get("event_time") or "")).lower()
    if names is not None and event_time and event_time not in names:
        found.append(f"`event_time` names {event_time}, which the model does not select: it selects {', '.join(names)}")
    return found


def window_of(model: Mapping[str, Any]) -> Window:
    """The window that dbt has come to."""
    batch = model.get("batch")
    if batch is None or model.get("language") == "python":
        raise DbtRuntimeError(f"{model['unique_id']} is a microbatch model without a batch: such a model is SQL")
    return Window.of(batch["event_time_start"], batch["event_time_end"])


def request(model: Mapping[str, Any], manifest: Any, settings: WindowSettings, full_refresh: bool) -> Request:
    """What this `dbt run` asks for; asked when the first of its windows arrives, which is the first in time."""
    from dbt.flags import get_flags
    from dbt.materializations.incremental.microbatch import MicrobatchBuilder
    from dbt_common.invocation import get_invocation_started_at

    node, window, flags = manifest.nodes[model["unique_id"]], window_of(model), get_flags()
    sample = getattr(flags, "SAMPLE", None)
    start, end = getattr(flags, "EVENT_TIME_START", None), getattr(flags, "EVENT_TIME_END", None)
    if sample is not None:
        start, end = sample.start, sample.end
    before = node.previous_batch_results
    if before is not None:
        windows = tuple(sorted(Window.of(*batch) for batch in before.failed))
    else:
        builder = MicrobatchBuilder(node, True, start, end, get_invocation_started_at())
        last = builder.build_end_time()
        windows = tuple(Window.of(window.start, max(last, window.end)).steps(settings.batch_size))
    return Request(
        windows,
        named=start is not None and before is None,
        full_refresh=full_refresh,
        # A sample's filter is narrower than its window, and so not to be rendered again.
        packed=sample is None and not reads_batch(node, manifest),
        empty=bool(getattr(flags, "EMPTY", False)),
    )


def reads_batch(node: Any, manifest: Any) -> bool:
    """Whether a model's code, or that of a macro it calls, looks at the window that it is compiled for."""
    return any(_looks_at_batch(code) for code in _codes(node, manifest))


def _codes(node: Any, manifest: Any) -> Iterator[str]:
    yield node.raw_code
    seen: set[str] = set()
    waiting = list(node.depends_on.macros)
    while waiting:
        macro = manifest.macros.get(waiting.pop())
        if macro is None or macro.unique_id in seen or macro.package_name in _CORE:
            continue
        seen.add(macro.unique_id)
        waiting += macro.depends_on.macros
        yield macro.macro_sql


def _looks_at_batch(code: str) -> bool:
    try:
        tree = jinja2.Environment(extensions=["jinja2.ext.do"]).parse(code)
    except jinja2.TemplateSyntaxError:
        # dbt's own tags (`{% materialization %}`, `{% snapshot %}`, …): nothing that a model calls.
        return False
    attributes = any(found.attr == "batch" for found in tree.find_all(nodes.Getattr))
    constants = [found.value for found in tree.find_all(nodes.Const) if isinstance(found.value, str)]
    return attributes or any(value == "batch" or value.startswith(_OF_THE_BATCH) for value in constants)


def file_select(target: Target, text: str, source: FileSource, base: str | None, listings: Listings) -> FileSelect:
    given = target.settings.source_path
    return FileSelect(
        target.lake,
        target.spark,
        Model.read(text, str(target.name)),
        source,
        None if given is None else DatedPath(given_location(given, base, key="source_path")),
        target.settings,
        listings,
    )


def response(outcome: Outcome) -> PenstockAdapterResponse:
    return PenstockAdapterResponse(
        _message=outcome.message,
        code="OK",
        rows_affected=outcome.rows,
        rows_inserted=outcome.rows,
        version=outcome.version,
        files=outcome.files,
        bytes=outcome.bytes,
    )
