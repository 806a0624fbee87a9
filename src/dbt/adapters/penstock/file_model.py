"""Models over `@data`: their config, given to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.config import resolved
from dbt.adapters.penstock.connections import PenstockAdapterResponse
from penstock.config.kinds import INGESTED, Kind, kind_of

if TYPE_CHECKING:
    from penstock.files import FileSource, IngestReport


def is_file_model(config: Mapping[str, Any]) -> bool:
    return kind_of(resolved(config)) in (*INGESTED, Kind.FILE_WINDOWS)


def source_named(manifest: Any, name: str) -> Any:
    """The dbt source that `file_source` names, as `source.table`."""
    for source in getattr(manifest, "sources", {}).values():
        if f"{source.source_name}.{source.name}" == name:
            return source
    known = sorted(f"{source.source_name}.{source.name}" for source in getattr(manifest, "sources", {}).values())
    raise DbtRuntimeError(f"`file_source` names {name!r}, which is no source: known are {', '.join(known) or 'none'}")


def file_source(config: Mapping[str, Any], manifest: Any, base: str | None, where: str) -> FileSource:
    from penstock.files import FileSource

    return FileSource.from_mapping(_keys(config, manifest), base=base, where=where)


def problems(config: Mapping[str, Any], manifest: Any) -> list[str]:
    """All that is wrong with where a model's files come from and how they are read."""
    from penstock.files import FileSource

    try:
        return FileSource.problems(_keys(config, manifest))
    except DbtRuntimeError as error:
        return [str(error.msg)]


def _keys(config: Mapping[str, Any], manifest: Any) -> dict[str, Any]:
    """The keys of the source that the config names, and its own over them."""
    from penstock.files import FileSource

    own = resolved(config)
    keys: dict[str, Any] = {}
    if own.get("file_source"):
        named = source_named(manifest, str(own["file_source"]))
        keys |= resolved(getattr(named.config, "_extra", {}))
    keys |= {key: value for key, value in own.items() if value is not None}
    if own.get("source_path"):
        from penstock.windows import DatedPath

        keys["source_roots"] = [DatedPath(str(own["source_path"])).root]
    return {key: keys.get(key) for key in FileSource.known()}


def response(report: IngestReport) -> PenstockAdapterResponse:
    """What a run of batches did, for `run_results.json`."""
    message = "OK nothing new" if report.nothing_new else f"OK {report.files:,} files, {report.rows:,} rows"
    return PenstockAdapterResponse(
        _message=message,
        code="OK",
        rows_affected=report.rows,
        rows_inserted=report.rows,
        version=report.version,
        files=report.files,
        bytes=report.bytes,
    )


def tested(test: Mapping[str, Any], manifest: Any) -> Any | None:
    """The file model that a unit test is of."""
    model = getattr(manifest, "nodes", {}).get(test.get("tested_node_unique_id"))
    return model if model is not None and is_file_model(model.config.to_dict()) else None


def given_rows(test: Mapping[str, Any], model: Any, manifest: Any) -> Any:
    """What a unit test gives for `@data`: the rows of the source that the model's `file_source` names."""
    named = resolved(model.config.to_dict()).get("file_source")
    if named is None:
        raise DbtRuntimeError(
            f"Unit test {test['name']} can't give rows for @data, because {model.name} names its files itself: "
            "declare a source that has these keys, and name it in the model's `file_source`"
        )
    wanted = "source('{}', '{}')".format(*str(named).split(".", 1))
    for given in manifest.unit_tests[test["unique_id"]].given:
        if given.input.replace(" ", "").replace('"', "'") == wanted.replace(" ", ""):
            return given.rows
    raise DbtRuntimeError(f"Unit test {test['name']} gives no rows for @data: write them as `input: {wanted}`")


def add_lineage(manifest: Any) -> None:
    """A model depends on the source that its `file_source` names, so that docs and selectors show it."""
    for node in getattr(manifest, "nodes", {}).values():
        name = getattr(getattr(node, "config", None), "_extra", {}).get("file_source")
        if not name:
            continue
        source = source_named(manifest, str(name))
        if source.unique_id not in node.depends_on.nodes:
            node.depends_on.nodes.append(source.unique_id)
            node.sources.append([source.source_name, source.name])
