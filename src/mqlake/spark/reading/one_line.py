"""Let Spark report an error of a source as one line, without the stack of its Python worker.

Spark prefixes what a worker raises with the worker's stack, unless the worker's environment
variable SPARK_HIDE_TRACEBACK is set, which it reads when it reports an error. The setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled` sets the variable for all errors of a
session. Here it is set for one error, and only while that error exists: the process may later run
functions of users, whose stacks they need.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from mqlake.errors import MqlakeError

VARIABLE = "SPARK_HIDE_TRACEBACK"

Kind = TypeVar("Kind", bound=type)


@contextmanager
def one_line() -> Generator[None]:
    """Raise errors of mqlake in the body without their stack."""
    try:
        yield
    except MqlakeError as error:
        if VARIABLE not in os.environ:
            os.environ[VARIABLE] = "1"
            weakref.finalize(error, os.environ.pop, VARIABLE, None)
        raise error.with_traceback(None) from None


def lines(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield rows, and raise errors of mqlake without their stack."""
    with one_line():
        yield from rows


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
        with one_line():
            return method(*arguments, **named)

    return cast("Callable[..., Any]", call)
