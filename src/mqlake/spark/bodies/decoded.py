"""The result of decoding a body, as Spark expressions, for every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column


class DecodedBody(NamedTuple):
    """The result for one message.

    Attributes:
        value: a struct; null if there is no body or nothing of it could be decoded.
        fault: what is wrong with the body, a string; null if it is valid.
    """

    value: Column
    fault: Column
