"""`cdf_merge` models: the tables whose changes they follow, and the calls that their macros make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.models.files import Contract
from dbt.adapters.penstock.relation import PenstockRelation
from dbt.adapters.penstock.response import PenstockAdapterResponse
from penstock.sql.names import Name

if TYPE_CHECKING:
    from penstock.changes import ChangeSource, MergeReport

STRATEGY = "cdf_merge"


def change_source(model: Mapping[str, Any], manifest: Any) -> ChangeSource:
    """The config of a model that follows changes; all errors of its keys are in one message."""
    from penstock.changes import ChangeSource

    config = model["config"]
    keys = {key: config.get(key) for key in ChangeSource.known()}
    if named := keys["cdf_source"]:
        names = [named] if isinstance(named, str) else named
        keys["cdf_source"] = [_relation(name, model, manifest) for name in names]
    return ChangeSource.from_mapping(keys, where=str(model["unique_id"]))


def _relation(given: str, model: Mapping[str, Any], manifest: Any) -> str:
    """The relation that `cdf_source` names by a model, a seed, `source.table` or `schema.identifier`."""
    nodes = {**getattr(manifest, "nodes", {}), **getattr(manifest, "sources", {})}
    for node in nodes.values():
        spellings = [node.name, f"{node.schema}.{node.identifier}"]
        if hasattr(node, "source_name"):
            spellings = [f"{node.source_name}.{node.name}", f"{node.schema}.{node.identifier}"]
        if given in spellings and node.unique_id != model["unique_id"] and hasattr(node, "identifier"):
            return Name(node.schema, node.identifier).sql
    if "." in given:
        return given
    raise DbtRuntimeError(
        f"`cdf_source` names {given!r}, which is not a model, seed or source. Write the name of a model, source.table "
        "or schema.identifier."
    )


def response(report: MergeReport) -> PenstockAdapterResponse:
    """The result of a run, for `run_results.json`."""
    rows = report.rows_inserted + report.rows_updated + report.rows_deleted
    told = f"{report.rows_inserted:,} inserted, {report.rows_updated:,} updated, {report.rows_deleted:,} deleted"
    return PenstockAdapterResponse(
        _message="OK nothing new" if report.nothing_new else f"OK {told}",
        code="OK",
        rows_affected=rows,
        rows_inserted=report.rows_inserted,
        rows_updated=report.rows_updated,
        rows_deleted=report.rows_deleted,
        version=report.version,
    )


class ChangeModels(EngineAdapter):
    """The calls that macros make for `cdf_merge` models."""

    @available.parse(lambda *a, **k: False)
    def follows_changes(self, model: Mapping[str, Any]) -> bool:
        """Whether the strategy of a model is `cdf_merge`."""
        return bool(model["config"].get("incremental_strategy") == STRATEGY)

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def merge_changes(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool, contract: Contract = None
    ) -> PenstockAdapterResponse:
        """Merge the row changes of a model's sources. Spark starts only if rows have changed."""
        from penstock import changes

        with self.connections.exception_handler(sql):
            report = changes.merge_changes(
                self.lake,
                relation.name_in_lake,
                change_source(model, self._macro_resolver),
                sql,
                runner=self.runner,
                full_refresh=replace,
                table=self.layout(model),
                on_range=lambda merged: logger.info(f"{relation.name_in_lake}: {merged}"),
                warn=logger.warning,
                contract=contract,
            )
        return response(report)
