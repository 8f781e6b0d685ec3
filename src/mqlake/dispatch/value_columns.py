"""The columns that a kernel writes for Arrow, and what it writes (`mqlake.dispatch.arrow`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Ints, Longs

INTS = ("queueId", "size", "bodyCrc", "sysFlag", "flag", "reconsumeTimes")
LONGS = (
    "queueOffset",
    "physicalOffset",
    "preparedTransactionOffset",
    "bornTimestamp",
    "storeTimestamp",
)
TEXTS = ("topic", "bornHost", "storeHost", "msgId", "body")
OF_PROPERTIES = ("tags", "uniqKey", "keys", "properties")

BITS = {name: 1 << place for place, name in enumerate((*INTS, *LONGS, *TEXTS, *OF_PROPERTIES))}
"""For each column, the bit that chooses it."""


class Times(NamedTuple):
    """How times are written.

    Attributes:
        unit: Arrow's name of their unit.
        per_millisecond: how many units a millisecond has.
        first, last: milliseconds; other times become the nearest of these.
    """

    unit: str = "ms"
    per_millisecond: int = 1
    first: int = -(1 << 63)
    last: int = (1 << 63) - 1


MILLISECONDS = Times()


class Texts(NamedTuple):
    """Texts as Arrow stores them, consecutively."""

    offsets: Ints
    data: Bytes


class OptionalTexts(NamedTuple):
    """Texts of which some are null."""

    nulls: int
    present: Bytes
    """Arrow's validity bits."""
    offsets: Ints
    data: Bytes


class Keys(NamedTuple):
    """A list of texts for each record."""

    starts: Ints
    offsets: Ints
    data: Bytes


class Pairs(NamedTuple):
    """Names and values of properties for each record, each name once."""

    starts: Ints
    name_offsets: Ints
    names: Bytes
    value_offsets: Ints
    values: Bytes


class Values(NamedTuple):
    """The chosen columns of records. The arrays of others are empty."""

    ints: Ints
    """i4[k, n]: the k chosen columns of INTS."""
    longs: Longs
    """i8[k, n]: the k chosen columns of LONGS."""
    texts: tuple[Texts, ...]
    """All columns of TEXTS."""
    are_text: bool
    """Whether all properties are UTF-8; otherwise the columns of OF_PROPERTIES are not filled."""
    tags: OptionalTexts
    unique_keys: OptionalTexts
    keys: Keys
    properties: Pairs
