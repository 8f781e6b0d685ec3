"""What decoding a body gives: expressions of Spark, whichever format it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column

CONFLUENT_PREFIX = 5
"""Bytes before a body in Confluent's wire format: a zero byte, and four of the schema's id."""


class Decoded(NamedTuple):
    """The result for one message.

    Attributes:
        value: a struct; null if there is no body or nothing of it could be decoded.
        fault: what is wrong with the body, a string; null if nothing is.
    """

    value: Column
    fault: Column
