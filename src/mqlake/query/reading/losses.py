"""Messages that a query selects but that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mqlake.errors import StoreError
from mqlake.formats.topic_names import OF_GROUPS
from mqlake.protocol.naming import is_system_topic, own_topics
from mqlake.query.reading.log import logger
from mqlake.query.reading.parsing import listed, suggestion

log = logger()

_LONG = 40
"""Characters of a long name of a topic."""


def is_internal(topic: str) -> bool:
    """Return whether a topic is RocketMQ's own, or that of a group."""
    return topic.startswith(OF_GROUPS) or is_system_topic(topic)


class _LossOptions(Protocol):
    @property
    def fail_on_data_loss(self) -> bool:
        """Return whether a query fails if messages are lost."""
        ...


def absent(options: _LossOptions, what: str) -> None:
    """Raise an error about something that a query names and that does not exist, or log it if
    losses are tolerated.

    Unlike lost messages, this is hardly ever what a user wants to tolerate, so the error does not
    propose it.

    Raises:
        StoreError: losses are not tolerated.
    """
    if options.fail_on_data_loss:
        raise StoreError(what)
    log.warning("%s", what)


def no_topic(topic: str, topics: Iterable[str]) -> str:
    """Return the text about a topic that does not exist, with the one that may be meant.

    Args:
        topics: those that exist.
    """
    known = _of_users(topics)
    what = f"topic {topic[:200]!r} does not exist"
    if not known:
        return f"{what}: there are no topics"
    return f"{what}; {suggestion(topic, known)}"


def no_match(pattern: str, topics: Iterable[str]) -> str:
    """Return the text about a pattern that no topic matches."""
    known = _of_users(topics)
    what = f"no topic matches {pattern!r}, which must match the whole name"
    return f"{what}: there are {listed(known)}" if known else what


def _of_users(topics: Iterable[str]) -> list[str]:
    """Return the topics that users name, sorted; names of more than 40 characters last."""
    names = set(topics)
    own = own_topics(names)
    found = [name for name in names if name not in own and not is_internal(name)]
    return sorted(found, key=lambda name: (len(name) > _LONG, name))


def data_loss(options: _LossOptions, what: str) -> None:
    """Raise an error about missing messages, or log it if losses are tolerated.

    Raises:
        StoreError: losses are not tolerated.
    """
    if options.fail_on_data_loss:
        raise StoreError(
            f"{what}; set failOnDataLoss to false to continue without the lost messages"
        )
    log.warning("%s", what)
