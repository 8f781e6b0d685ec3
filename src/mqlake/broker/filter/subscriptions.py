"""What a subscription selects: an expression of tags, or a condition over properties.

Upstream: `FilterAPI`, `ExpressionType`, `ConsumerFilterManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqlake.broker.filter.sql92.java_numbers import NotComparableError
from mqlake.broker.filter.sql92.parser import compile_expression, is_compiled
from mqlake.broker.filter.sql92.terms import Evaluate
from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.settings import BrokerSettings

SQL92 = "SQL92"

_LONG = 64
"""Characters of an expression that takes about a millisecond to parse."""


class Choice(NamedTuple):
    """The messages of a topic that are selected.

    Attributes:
        tags: an expression of tags, which the store evaluates; None if `condition` decides.
        condition: over properties; None if `tags` decides.
    """

    tags: str | None = None
    condition: Evaluate | None = None

    def holds(self, properties: Mapping[str, str]) -> bool:
        """Return whether the condition is true for a message with these properties.

        If its values cannot be compared, it is not.
        """
        if self.condition is None:
            return True
        try:
            return self.condition(properties) is True
        except NotComparableError:
            return False


def is_by_tags(expression_type: str | None) -> bool:
    """Return whether an expression of this type is one of tags."""
    return not expression_type or expression_type == "TAG"


def is_costly(expression: str | None, expression_type: str | None) -> bool:
    """Return whether `choice` would take long: 12 microseconds for a character."""
    return (
        expression is not None
        and len(expression) >= _LONG
        and expression_type == SQL92
        and not is_compiled(expression)
    )


def not_supported(settings: BrokerSettings, expression_type: str | None) -> str | None:
    """Return why a broker does not filter by expressions of a type, None if it does."""
    if is_by_tags(expression_type) or settings.enable_property_filter:
        return None
    return f"The broker does not support consumer to filter message by {expression_type}"


def choice(settings: BrokerSettings, expression: str | None, expression_type: str | None) -> Choice:
    """Return what an expression selects.

    Raises:
        ExpressionError: the text is not an expression of its type, or is too long.
    """
    most = settings.max_filter_expression_size
    if expression and len(expression) > most:
        raise ExpressionError(
            f"the filter expression has {len(expression)} characters; the maximum is {most} "
            "(maxFilterExpressionSize)"
        )
    if is_by_tags(expression_type):
        return Choice(tags=expression)
    if expression_type != SQL92:
        raise ExpressionError(f"there are no filters of type {expression_type}; use TAG or {SQL92}")
    return Choice(condition=compile_expression(expression or ""))
