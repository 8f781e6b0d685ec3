"""Which messages of a topic a call asks for (upstream: `FilterAPI`)."""

from __future__ import annotations

from typing import Final

from mqlake.client.consumer.subscriptions import SelectedTopic, Sql
from mqlake.grpc.messages import Code, FilterExpression, FilterType
from mqlake.proxy.errors import StatusError

_LONGEST: Final = 32_768
"""Characters of an expression."""


def selected_topic(topic: str, expression: FilterExpression) -> SelectedTopic:
    """Return a topic, and which of its messages are asked for.

    Raises:
        StatusError: ILLEGAL_FILTER_EXPRESSION.
    """
    text = expression.expression
    if len(text) > _LONGEST:
        raise _illegal(f"the expression has {len(text)} characters; the maximum is {_LONGEST}")
    if expression.type == FilterType.SQL:
        if not text:
            raise _illegal("Expression can't be null! SQL92")
        return SelectedTopic(topic, Sql(text), 0)
    found = SelectedTopic(topic, text, 0)
    if not found.tags and found.expression != "*":
        raise _illegal(f"the expression names no tag: {text[:255]!r}")
    return found


def _illegal(reason: str) -> StatusError:
    return StatusError(Code.ILLEGAL_FILTER_EXPRESSION, reason)
