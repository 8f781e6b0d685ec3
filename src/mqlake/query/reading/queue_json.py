"""Parse queues and offsets from JSON, in the forms of Spark's Kafka source and of rocketmq-spark.

{"TopicA": [0, 1]}                          queues
{"TopicA": {"0": 23, "1": -1}}              a number for each queue
{"TopicA": {"broker-a": {"0": 23}}}         the same, by broker (rocketmq-spark)

A store directory belongs to one broker, so `queues`, `offsets` and `timestamps` drop its name. The
functions with `of_brokers_` keep it: "" if none is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from mqlake.store.log.scan import Queue

EARLIEST, LATEST = -2, -1
"""The numbers that stand for the first and for the next offset of a queue."""

Numbers = dict[Queue, int]

BrokerQueue = tuple[str, str, int]
"""A topic, the name of a broker ("" for any), a queue id."""

BrokerNumbers = dict[BrokerQueue, int]

_MOST = (1 << 63) - 1


def queues(text: str) -> tuple[Queue, ...]:
    """Return the queues in JSON; raise ValueError if it names no queues."""
    found = of_brokers_queues(text)
    _require_one_broker(found)
    return tuple(dict.fromkeys((topic, queue_id) for topic, _, queue_id in found))


def of_brokers_queues(text: str) -> tuple[BrokerQueue, ...]:
    """Return the queues in JSON, with brokers; raise ValueError if it names no queues."""
    expected = 'queues as JSON, such as {"TopicA": [0, 1]}'
    found: list[BrokerQueue] = []
    for topic, listed in _object(text, expected).items():
        for name, ids in _by_broker(listed, list).items():
            numbers: list[Any] = _of(list, ids, expected)
            found += [(topic, name, _queue_id(number, expected)) for number in numbers]
    if not found:
        raise ValueError(expected)
    return tuple(dict.fromkeys(found))


def by_topic(listed: Iterable[Queue]) -> dict[str, list[int]]:
    """Return queues as the JSON names them, in order."""
    found: dict[str, list[int]] = {}
    for topic, queue_id in sorted(set(listed)):
        found.setdefault(topic, []).append(queue_id)
    return found


def offsets(text: str) -> Numbers:
    """Return queue offsets; -2 is the earliest, -1 the latest."""
    return _without_broker(of_brokers_offsets(text))


def of_brokers_offsets(text: str) -> BrokerNumbers:
    """Return queue offsets by broker; -2 is the earliest, -1 the latest."""
    return _numbers(text, EARLIEST, 'offsets as JSON, such as {"TopicA": {"0": 23, "1": -1}}')


def timestamps(text: str) -> Numbers:
    """Return a store time (ms) for each queue."""
    return _without_broker(of_brokers_timestamps(text))


def of_brokers_timestamps(text: str) -> BrokerNumbers:
    """Return a store time (ms) for each queue, by broker."""
    return _numbers(text, 0, 'times (ms) as JSON, such as {"TopicA": {"0": 1700000000000}}')


def _without_broker(numbers: BrokerNumbers) -> Numbers:
    _require_one_broker(numbers)
    return {(topic, queue_id): number for (topic, _, queue_id), number in numbers.items()}


def _numbers(text: str, least: int, expected: str) -> BrokerNumbers:
    found: BrokerNumbers = {}
    for topic, of_topic in _object(text, expected).items():
        for name, by_queue in _by_broker(of_topic, int).items():
            numbers: dict[str, Any] = _of(dict, by_queue, expected)
            for queue_id, number in numbers.items():
                if type(number) is not int or not least <= number <= _MOST:
                    raise ValueError(expected)
                found[topic, name, _queue_id(queue_id, expected)] = number
    if not found:
        raise ValueError(expected)
    return found


def _object(text: str, expected: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(expected) from None


def _by_broker(of_topic: Any, leaf: type) -> dict[str, Any]:
    return cast("dict[str, Any]", of_topic) if _is_by_broker(of_topic, leaf) else {"": of_topic}


def _is_by_broker(of_topic: Any, leaf: type) -> bool:
    if not isinstance(of_topic, dict):
        return False
    kind = list if leaf is list else dict
    return any(isinstance(value, kind) for value in cast("dict[str, Any]", of_topic).values())


def _require_one_broker(queues: Iterable[BrokerQueue]) -> None:
    """Raise ValueError for several brokers: a store directory belongs to one, without its name."""
    brokers: dict[str, str] = {}
    for topic, name, _ in queues:
        if brokers.setdefault(topic, name) != name:
            raise ValueError(
                f"about one broker only, as a store directory is, but about {name} too"
            )


def _of(kind: type, value: Any, expected: str) -> Any:
    if isinstance(value, kind):
        return value
    raise ValueError(expected)


def _queue_id(value: Any, expected: str) -> int:
    text = str(value)
    if not text.isascii() or not text.isdigit() or int(text) > 0x7FFFFFFF:
        raise ValueError(expected)
    return int(text)
