"""Models over `@data`: their source, their lineage, and the calls that their macros make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.config import resolved
from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation
from dbt.adapters.penstock.response import PenstockAdapterResponse
from penstock.config.kinds import INGESTED, Kind, kind_of
from penstock.sql.names import Name
from penstock.sql.tokens import bind
from penstock.wording import count

if TYPE_CHECKING:
    from penstock.files import FileSource, IngestReport, Listings

Contract = Callable[[str], None] | None
"""dbt's macro that raises if the columns of a query differ from the model's contract."""


def is_file_model(config: Mapping[str, Any]) -> bool:
    """Whether the config is that of a model over `@data`."""
    return kind_of(resolved(config)) in (*INGESTED, Kind.FILE_WINDOWS)


def source_named(manifest: Any, name: str) -> Any:
    """The dbt source that `file_source` names; an error if there is none."""
    for source in getattr(manifest, "sources", {}).values():
        if f"{source.source_name}.{source.name}" == name:
            return source
    known = sorted(f"{source.source_name}.{source.name}" for source in getattr(manifest, "sources", {}).values())
    raise DbtRuntimeError(
        f"`file_source` names {name!r}, which is not a source of this project. Its sources: {', '.join(known) or 'none'}"
    )


def file_source(
    config: Mapping[str, Any],
    manifest: Any,
    base: str | None,
    where: str,
    storage_options: Mapping[str, str] | None = None,
) -> FileSource:
    """Where a model's files are and how they are read; all errors of its keys are in one message."""
    from penstock.files import FileSource

    keys = _keys(config, manifest)
    return FileSource.from_mapping(keys, base=base, where=where, storage_options=storage_options)


def problems(config: Mapping[str, Any], manifest: Any) -> list[str]:
    """All errors of the keys that say where a model's files are and how they are read."""
    from penstock.files import FileSource

    try:
        return FileSource.problems(_keys(config, manifest))
    except DbtRuntimeError as error:
        return [str(error.msg)]


def _keys(config: Mapping[str, Any], manifest: Any) -> dict[str, Any]:
    """The keys of the model, over those of the source that its config names."""
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
    """The result of a run, for `run_results.json`."""
    message = (
        "OK nothing new" if report.nothing_new else f"OK {count(report.files, 'file')}, {count(report.rows, 'row')}"
    )
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
    """The model over `@data` that a unit test tests; None if it tests another model."""
    model = getattr(manifest, "nodes", {}).get(test.get("tested_node_unique_id"))
    return model if model is not None and is_file_model(model.config.to_dict()) else None


def given_rows(test: Mapping[str, Any], model: Any, manifest: Any) -> Any:
    """The rows that a unit test gives for `@data`: those of the source that the model's `file_source` names."""
    named = resolved(model.config.to_dict()).get("file_source")
    if named is None:
        raise DbtRuntimeError(
            f"Unit test {test['name']} can't give rows for @data, because {model.name} has no `file_source`. "
            "Declare a source with the keys of the model's files, and name it in `file_source`."
        )
    wanted = "source('{}', '{}')".format(*str(named).split(".", 1))
    for given in manifest.unit_tests[test["unique_id"]].given:
        if given.input.replace(" ", "").replace('"', "'") == wanted.replace(" ", ""):
            return given.rows
    raise DbtRuntimeError(f"Unit test {test['name']} gives no rows for @data: write them as `input: {wanted}`")


def add_lineage(manifest: Any) -> None:
    """Make models depend on the source that their `file_source` names, so that docs and selectors show it."""
    for node in getattr(manifest, "nodes", {}).values():
        name = getattr(getattr(node, "config", None), "_extra", {}).get("file_source")
        if not name:
            continue
        source = source_named(manifest, str(name))
        if source.unique_id not in node.depends_on.nodes:
            node.depends_on.nodes.append(source.unique_id)
            node.sources.append([source.source_name, source.name])


class FileModels(EngineAdapter):
    """The calls that macros make for models over `@data`."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._run_listings: Listings | None = None
        self._listing = threading.Lock()

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """A project was parsed: forget the listings of an earlier run in this process."""
        super().set_macro_resolver(macro_resolver)
        self._run_listings = None
        add_lineage(macro_resolver)

    @available.parse(lambda *a, **k: False)
    def is_file_model(self, model: Mapping[str, Any]) -> bool:
        """Whether a model reads `@data`."""
        return is_file_model(model["config"])

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def ingest_files(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool, contract: Contract = None
    ) -> PenstockAdapterResponse:
        """Ingest a model's new files. Spark starts only if there are new files."""
        # Not imported above, because it brings pyarrow.
        from penstock import files

        with self.connections.exception_handler(sql):
            report = files.ingest(
                self.lake,
                relation.name_in_lake,
                self._file_source(model),
                sql,
                runner=self.runner,
                full_refresh=replace,
                max_batches=1 if self.samples() else None,
                table=self.layout(model),
                listings=self._listings,
                on_batch=lambda batch: logger.info(f"{relation.name_in_lake}: {batch}"),
                warn=logger.warning,
                contract=contract,
            )
        return response(report)

    @available.parse(lambda *a, **k: "")
    def preview_files(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], rows: int | None = None
    ) -> str:
        """A model's query over one batch of its files; nothing is ingested."""
        from penstock import files

        with self.connections.exception_handler(sql):
            return files.preview(
                self.lake,
                relation.name_in_lake,
                self._file_source(model),
                sql,
                runner=self.runner,
                rows=rows,
                listings=self._listings,
            )

    @available.parse_none
    def given_data(self, test: Mapping[str, Any]) -> dict[str, Any] | None:
        """The rows that a unit test gives for `@data`, with the types of its columns; None for other tests."""
        from penstock import files

        model = tested(test, self._macro_resolver)
        if model is None:
            return None
        rows = given_rows(test, model, self._macro_resolver)
        with self.connections.exception_handler(f"unit test {test['name']}"):
            name, source = Name(model.schema, model.identifier), self._file_source(model.to_dict())
            types = files.data_columns(self.lake, name, source, runner=self.runner, listings=self._listings)
        return {"rows": rows, "types": {column.lower(): type for column, type in types.items()}}

    @available.parse(lambda *a, **k: "")
    def bind_data(self, sql: str, relation: str) -> str:
        """The SQL with a relation in place of `@data`."""
        return bind(sql, "data", relation)

    @property
    def _listings(self) -> Listings:
        """The listings of this run. Models that read the same root share one listing."""
        from penstock.files import Listings

        with self._listing:
            if self._run_listings is None:
                self._run_listings = Listings(self.lake.storage_options)
            return self._run_listings

    def _file_source(self, model: Mapping[str, Any]) -> FileSource:
        return file_source(
            model["config"],
            self._macro_resolver,
            self.connections.project_root,
            str(model["unique_id"]),
            self.connections.lake.storage_options,
        )
