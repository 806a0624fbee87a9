"""Facts about a query, from the plan that Spark's analyzer makes of it. All facts about queries come from here.

The syntax tree of a SQL text shows where each part is, but only Spark knows each function. Its analyzer has looked up
every name, and has not yet replaced `current_date()` by a constant.

A session without an analyzed plan (Spark Connect) gives `UNKNOWN`, which counts as unsafe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from penstock.spark.internals.analyzed_plan import listed_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CALLED = re.compile(r"\s*(?:[\w`]+\s*\.\s*)*`?(\w+)`?\s*\(")

# Expressions that depend on when, where or for whom they run. Spark calls most of them deterministic, because they are
# constants within one query.
_OF_THE_MOMENT = {
    "CurrentBatchTimestamp", "CurrentCatalog", "CurrentDatabase", "CurrentDate", "CurrentPath", "CurrentTime",
    "CurrentTimeZone", "CurrentTimestamp", "CurrentUser", "LocalTimestamp", "Now", "SparkVersion", "VariableReference",
    "Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "SparkPartitionID",
    "DirectShufflePartitionID", "InputFileName", "InputFileBlockStart", "InputFileBlockLength",
    "CallMethodViaReflection", "TryReflect",
}  # fmt: skip
# Users' code that is not a `UserDefinedExpression`: functions of other catalogs.
_FOREIGN = {"ApplyFunctionExpression", "V2Aggregator", "Invoke", "StaticInvoke"}
# Sketches that use random numbers as they fill.
_THROWN = {
    f"Kll{work}Agg{type}" for work in ("Sketch", "Merge") for type in ("Bigint", "Double", "Float")
}  # fmt: skip
# Operators that run users' code.
_SCRIPTS = {
    "ScriptTransformation",
    "PythonUDTF",
    "UnresolvedPolymorphicPythonUDTF",
    "ArrowEvalPython",
    "BatchEvalPython",
}
# The second one has an order of its own: WITHIN GROUP (ORDER BY …).
_AGGREGATES = ("aggregate", "ordered aggregate")
# Aggregates of which Spark says that they depend on the order of the rows.
_ORDERED = {
    "AnyValue", "First", "Last", "CollectList", "CollectSet", "ListAgg", "MaxBy", "MinBy", "Mode", "ApproxTopK",
    "ApproxTopKAccumulate", "ApproxTopKCombine", "HistogramNumeric", "MaxMinByK", "HllSketchAgg", "HllUnionAgg",
}  # fmt: skip
# Functions of a list or a set whose result does not depend on its order.
_SETTLING = {"SortArray", "ArraySize", "Size", "ArrayMax", "ArrayMin", "ArrayContains"}


@dataclass(frozen=True)
class Call:
    """A function where a query calls it."""

    name: str
    """As the query writes it, in lower case; Spark's name for it if the text does not have it."""
    text: str
    """The call as the query writes it, if that is known; cut off after 200 characters."""

    def __str__(self) -> str:
        return " ".join(self.text.split()) or f"{self.name}()"


@dataclass(frozen=True)
class Input:
    """One leaf of a plan that reads data."""

    kind: str
    """delta, files, view (between the query and its tables), or other."""
    name: str
    """A Delta table's folder, the folders or files that are read, a view's name, or a class."""
    version: int | None = None
    """The version of a Delta table."""
    text: str = ""
    """A view's query; the format of files."""


@dataclass(frozen=True)
class Facts:
    """Spark's facts about a query."""

    known: bool = True
    """False if Spark has no analyzed plan; then the other facts mean nothing."""
    inputs: tuple[Input, ...] = ()
    aggregates: tuple[Call, ...] = ()
    windows: tuple[Call, ...] = ()
    generators: tuple[Call, ...] = ()
    unstable: tuple[Call, ...] = ()
    """Calls whose result may differ for the same rows: by chance, time, session, or users' code."""
    by_order: tuple[Call, ...] = ()
    """Aggregates whose result depends on the order of the rows, which Spark does not define."""
    subqueries: int = 0
    """How many subqueries are in expressions."""
    operators: Counter[str] = field(default_factory=Counter)
    """How often each operator occurs; a join counts with its kind, `Join LeftOuter`."""


UNKNOWN = Facts(known=False)


def facts(query: DataFrame) -> Facts:
    """The facts about a query; nothing runs.

    >>> facts(lake.runner.query("select g, mean(n) from s.a group by g")).aggregates    # doctest: +SKIP
    (Call(name='mean', text='mean(n)'),)
    """
    listed = listed_nodes(query)
    return UNKNOWN if listed is None else of_nodes([Node(*fields) for fields in listed])


class Node(NamedTuple):
    """A node of a plan, as `java/PlanNodes.java` lists it."""

    kind: str
    java: str
    name: str
    text: str
    more: str

    @property
    def type(self) -> str:
        """The name of its class."""
        return self.java.rpartition(".")[2]

    @property
    def call(self) -> Call:
        # The text of a PIVOT's aggregates is that of the whole clause.
        written = None if self.type == "PivotFirst" else _CALLED.match(self.text)
        return Call((written.group(1) if written else self.name).lower(), self.text)


def of_nodes(nodes: list[Node]) -> Facts:
    """The facts in a plan's nodes."""
    operators = Counter(f"{node.name} {node.more}".strip() for node in nodes if node.kind == "operator")
    return Facts(
        inputs=tuple(dict.fromkeys(_inputs(nodes))),
        aggregates=_calls(node for node in nodes if node.kind in _AGGREGATES),
        windows=_calls(node for node in nodes if node.kind == "window"),
        generators=_calls(node for node in nodes if node.kind == "generator"),
        unstable=_calls(node for node in nodes if _is_unstable(node)),
        by_order=_calls(node for node in nodes if node.kind == "aggregate" and _is_by_order(node)),
        subqueries=sum(node.kind == "subquery" for node in nodes),
        operators=operators,
    )


def _calls(nodes: Iterator[Node]) -> tuple[Call, ...]:
    return tuple(dict.fromkeys(node.call for node in nodes))


def _is_unstable(node: Node) -> bool:
    if node.kind in ("random", "user", "metadata") or node.type in _OF_THE_MOMENT:
        return True
    if node.kind in _AGGREGATES and node.type in _THROWN:
        return True
    if node.kind == "operator":
        return node.name in _SCRIPTS
    # Inside Spark's own functions these call Spark.
    return node.kind == "expression" and node.type in _FOREIGN


def _is_by_order(node: Node) -> bool:
    return node.type in _ORDERED and node.more not in _SETTLING


def _inputs(nodes: list[Node]) -> Iterator[Input]:
    for node in nodes:
        if node.kind == "delta":
            yield Input("delta", node.name, int(node.text))
        elif node.kind == "files":
            yield Input("files", node.text, text=node.name)
        elif node.kind == "view":
            yield Input("view", node.name, text=node.more)
        elif node.kind == "leaf" and node.type not in ("OneRowRelation", "LocalRelation", "Range", "CTERelationRef"):
            yield Input("other", node.name)
