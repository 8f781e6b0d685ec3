"""Let a query of the source build only the columns that it uses.

Spark tells a Python source neither the columns that a query uses nor that it only counts rows, at
least up to Spark 4.3. But Spark's own plan of the query has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NARROW = "physicalOffset"
"""The column that is built if a query uses none, so that rows can be counted."""


def pruned(
    spark: SparkSession,
    query: Callable[[DataFrame], DataFrame],
    path: str | None = None,
    *,
    source: str = "rocketmq",
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the result of a query whose source builds only the columns that the query uses.

    `query` is called twice: to see what it uses, and for the result. It must not start a job. Over
    Spark Connect, whose plans are on the server, all columns are built.

    Args:
        query: returns a DataFrame for the DataFrame of all messages.
        path: the store directory; None if `options` name a cluster.
        source: the format, rocketmq or kafka-log.
        options: options of the source; `columns` among them has no effect.
    """
    given = {
        name: str(value) for name, value in (options or {}).items() if name.lower() != "columns"
    }
    whole = spark.read.format(source).options(**given).load(path)
    if not hasattr(whole, "_jdf"):
        return query(whole)
    used = _used(query(whole), whole.columns)
    narrow = NARROW if NARROW in whole.columns else whole.columns[0]
    names = [name for name in whole.columns if name in used] or [narrow]
    reader = spark.read.format(source).options(**given, columns=",".join(names))
    return query(reader.load(path))


def _used(frame: DataFrame, columns: list[str]) -> set[str]:
    """Return which columns of the source the plan of a DataFrame uses."""
    plan: Any = cast("Any", frame)._jdf.queryExecution().optimizedPlan()
    read: list[tuple[str, int]] = []
    used = {number for _, number in _attributes(plan.outputSet())}
    for node in _nodes(plan):
        children = _listed(node.children())
        if children:
            used |= {number for _, number in _attributes(node.references())}
        else:
            read += _attributes(node.outputSet())
        # Their rows are used whole: those of a union are matched by position.
        whole = children if len(children) > 1 and not _is_join(node) else []
        for one in (*whole, *_listed(node.subqueries())):
            used |= {number for _, number in _attributes(one.outputSet())}
    return {name for name, number in read if name in columns and number in used}


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for one in (*_listed(plan.children()), *_listed(plan.subqueries())):
        yield from _nodes(one)


def _is_join(node: Any) -> bool:
    """Return whether a node's output has the attributes of all its children that are used."""
    return str(node.getClass().getSimpleName()) == "Join"


def _listed(found: Any) -> list[Any]:
    """Return the items of a Seq of Scala."""
    return [found.apply(number) for number in range(found.size())]


def _attributes(attributes: Any) -> list[tuple[str, int]]:
    """Return the names and ids of a set of attributes."""
    listed = _listed(attributes.toSeq())
    return [(str(one.name()), int(one.exprId().id())) for one in listed]
