"""The Python API: `connect` and `Lake`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.config.session_settings import SessionSettings
from penstock.delta.layout import Layout
from penstock.delta.table import Column
from penstock.errors import PenstockError, UnsupportedTable
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import View
from penstock.lake.reserved import FILES
from penstock.secrets import remember
from penstock.spark.runner import Runner
from penstock.sql import tokens as sql
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted
from penstock.steps import Step, no_step

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.changes import MergeReport
    from penstock.files import IngestReport
    from penstock.spark.backend import DataFrame, DeltaTable, SparkSession

_WRITE_MODES = ("append", "overwrite", "error", "ignore")


class Lake(LakeFolder):
    """A folder of relations, `<root>/<schema>/<identifier>/`, with Spark at hand for the statements that need it.

    >>> lake = connect("./lake")                          # doctest: +SKIP
    >>> lake.sql("select * from silver.orders").show()    # doctest: +SKIP
    """

    def __init__(
        self,
        root: str,
        *,
        settings: SessionSettings | None = None,
        storage_options: Mapping[str, Any] | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(root, storage_options=storage_options, read_only=read_only)
        self.settings = settings or SessionSettings()
        remember(self.settings.spark_config)
        self._threads = threading.local()
        self.own_rows: _OwnRows = _OwnRows(self)

    @property
    def runner(self) -> Runner:
        """This thread's runner."""
        if not hasattr(self._threads, "runner"):
            self._threads.runner = Runner(self, self.settings)
        runner: Runner = self._threads.runner
        return runner

    @property
    def spark(self) -> SparkSession:
        """This thread's Spark session; the first use starts Spark."""
        return self.runner.spark

    def columns(self, name: str | Name) -> list[Column]:
        """A relation's columns, from its log or its `_view.json`; from Spark where only Spark knows them."""
        try:
            return super().columns(name)
        except UnsupportedTable:
            return self.runner.columns_of_relation(self.get(name).name.sql)

    def sql(self, text: str) -> DataFrame:
        """Run a statement; the names in it are found on disk.

        Returns None for DROP, RENAME, CREATE VIEW and CREATE SCHEMA: the lake runs them without Spark.
        """
        return self.runner.run(text).frame  # type: ignore[return-value]

    def table(self, name: str) -> DataFrame:
        """A relation as a PySpark DataFrame."""
        return self.runner.table(self.get(name).name)

    def files(self, name: str) -> pa.Table:
        """The files of a table that is built from files, as Arrow: those in its ledger, and those that wait.

        The columns are those of `penstock.files`. As a DataFrame: `lake.table("penstock.files").where(…)`.
        """
        from penstock.files.plan import KIND
        from penstock.inspection.table_ledger import TableLedger

        found = self.get(name)
        TableLedger.open(self, found, check=False).check_kind(KIND, "is not built from files")
        schema, identifier = found.name.schema, found.name.identifier
        return self.own_rows.rows(FILES, Wanted.only(table_schema=schema, table_name=identifier))

    def history(self, name: str) -> pa.Table:
        """The commits of a table as Arrow, the newest first: batches, merges, windows, and commits of others."""
        from penstock.own_tables.history import time_line

        return time_line(self, name)

    def delta(self, name: str) -> DeltaTable:
        """A table as Delta's own DeltaTable: merge, update, delete, history, optimize, vacuum."""
        relation = self.get(name)
        if relation.kind != "table":
            raise PenstockError(
                f"{relation} is a {relation.kind}, not a Delta table", fix="To read it, use `lake.table`."
            )
        self.check_writable()
        return self.runner.delta_table(relation.location)

    def write(
        self,
        frame: DataFrame,
        name: str,
        mode: str = "append",
        *,
        partition_by: list[str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Write a DataFrame to a table by name. The schema and the table are created if they do not exist."""
        self.check_writable()
        if mode not in _WRITE_MODES:
            raise PenstockError(f"{mode!r} is not a write mode", fix=f"Use one of {', '.join(_WRITE_MODES)}.")
        target = Name.parse(name)
        self.check_name(target)
        existing = self.find(target)
        if existing is not None and existing.kind != "table":
            raise PenstockError(f"{target} is a {existing.kind}, not a table", fix="Drop it first.")
        writer = frame.write.format("delta").mode(mode).options(**dict(properties or {}))
        if mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        self.create_schema(target.schema)
        self.runner.save(writer, self.location_of(target))

    def ingest(
        self,
        name: str,
        *,
        select: str = "select * from @data",
        full_refresh: bool = False,
        partition_by: str | list[str] | None = None,
        cluster_by: str | list[str] | None = None,
        properties: Mapping[str, str] | None = None,
        **source: Any,
    ) -> IngestReport:
        """Bring new files into a table, each exactly once. Accepts every key of `docs/files.md`.

        >>> lake.ingest("bronze.events", roots=["landing"], max_files_per_trigger=50)    # doctest: +SKIP
        """
        from penstock import files

        config = files.FileSource.from_mapping(source, where=name, storage_options=self.storage_options)
        table = Layout.from_config(
            {"partition_by": partition_by, "cluster_by": cluster_by, "table_properties": properties}
        )
        return files.ingest(
            self, Name.parse(name), config, select, runner=self.runner, full_refresh=full_refresh, table=table
        )

    def merge_changes(
        self,
        name: str,
        *,
        key: str | list[str],
        select: str,
        source: str | None = None,
        full_refresh: bool = False,
        partition_by: str | list[str] | None = None,
        cluster_by: str | list[str] | None = None,
        properties: Mapping[str, str] | None = None,
        **config: Any,
    ) -> MergeReport:
        """Bring the row changes of tables into a table, deletes included; `@changes` stands for `source`.

        >>> lake.merge_changes("gold.products", source="silver.products", key=["code"],
        ...                    select="select code, name from @changes where active")    # doctest: +SKIP
        """
        from penstock import changes

        reads_changes = bool(sql.parameters(select, "changes"))
        if source is not None and not reads_changes:
            raise PenstockError(
                "`source` is set, but the SELECT does not read `@changes`",
                where=name,
                fix="Read `@changes` in the SELECT, or remove `source`.",
            )
        if source is None and reads_changes:
            raise PenstockError(
                "The SELECT reads `@changes`, but `source` is not set",
                where=name,
                fix="Set `source` to the table that `@changes` stands for, or name the table in the SELECT.",
            )
        if source is not None:
            select = sql.bind(select, "changes", Name.parse(source).sql)
        table = Layout.from_config(
            {"partition_by": partition_by, "cluster_by": cluster_by, "table_properties": properties}
        )
        if "unique_key" in config:
            raise PenstockError("`unique_key` is given twice: it is another name of `key`", where=name)
        followed = changes.ChangeSource.from_mapping({"unique_key": key, **config}, where=name)
        return changes.merge_changes(
            self, Name.parse(name), followed, select, runner=self.runner, full_refresh=full_refresh, table=table
        )

    def create_view(
        self,
        name: Name,
        query: str,
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> View:
        """Make a view that every later process sees. Spark checks its SQL first."""
        return (runner or self.runner).create_view(name, query, description=description, comments=comments)

    def clone(self, source: Name, target: Name, runner: Runner | None = None, *, step: Step = no_step) -> None:
        """A shallow clone. It gets the source's ledger and transaction marks, so the clone's next run continues from the
        source's last batch.

        All of it is read at one version of the source. A relation that has the target's name stays until the clone
        takes its place.
        """
        from penstock.protocol.clone import clone

        clone(self, source, target, runner or self.runner, step)


class _OwnRows:
    """The lake's own tables. Their modules bring pyarrow, so they are imported when one is read."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def rows(self, name: Name, wanted: Wanted = EVERYTHING) -> pa.Table:
        from penstock.own_tables import OwnTables

        return OwnTables(self._lake).rows(name, wanted)


def connect(
    root: str,
    *,
    session: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    read_only: bool = False,
) -> Lake:
    """Open a lake. Nothing is started, and nothing is written.

    >>> connect("./lake", session={"memory": "4g"})    # doctest: +SKIP
    """
    lake = Lake(
        root,
        settings=SessionSettings.from_mapping(session),
        storage_options=storage_options,
        read_only=read_only,
    )
    lake.storage.check_root(writable=not read_only)
    return lake
