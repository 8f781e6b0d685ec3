"""Let Spark report an error of a source as one line, without the stack of its Python worker.

Spark prefixes what a worker raises with the worker's stack, unless the worker's environment
variable SPARK_HIDE_TRACEBACK is set, which it reads when it reports an error. The setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled` sets the variable for all errors of a
session. Here it is set for one error, and only while that error exists: the process may later run
functions of users, whose stacks they need. With MQLAKE_DEBUG=1, stacks stay.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from mqlake.errors import MqlakeError

VARIABLE = "SPARK_HIDE_TRACEBACK"

Kind = TypeVar("Kind", bound=type)


def lines(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield rows, and raise errors of mqlake without their stack."""
    try:
        yield from rows
    except MqlakeError as error:
        if os.environ.get("MQLAKE_DEBUG") == "1":
            raise
        _hide_stack(error)
        raise error.with_traceback(None) from None


def raises_lines(*names: str) -> Callable[[Kind], Kind]:
    """Let methods of a class raise errors of mqlake without their stack (decorates the class)."""

    def decorate(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _raising_lines(getattr(kind, name)))
        return kind

    return decorate


def _raising_lines(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except MqlakeError as error:
            if os.environ.get("MQLAKE_DEBUG") == "1":
                raise
            _hide_stack(error)
            raise error.with_traceback(None) from None

    return cast("Callable[..., Any]", call)


class _HiddenStacks:
    """How many errors exist for which the variable is set."""

    errors = 0


def _hide_stack(error: MqlakeError) -> None:
    """Set the variable as long as an error exists, unless it was set by others."""
    if _HiddenStacks.errors == 0 and VARIABLE in os.environ:
        return
    _HiddenStacks.errors += 1
    os.environ[VARIABLE] = "1"
    weakref.finalize(error, _show_stacks)


def _show_stacks() -> None:
    _HiddenStacks.errors -= 1
    if _HiddenStacks.errors == 0:
        os.environ.pop(VARIABLE, None)
