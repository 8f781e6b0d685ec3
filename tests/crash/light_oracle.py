"""What must hold of the light queues of every store that was opened after a crash."""

from __future__ import annotations

from mqlake.formats import sys_flag
from mqlake.formats.properties import encode_properties
from mqlake.store.light.light_queues import LightPlace
from mqlake.store.light.reference.find import places_of
from mqlake.store.owned_store import OwnedStore
from tests.crash.expectation import require
from tests.crash.log_walk import Log


def check_light(store: OwnedStore, log: Log) -> None:
    """Each record has its entry in its light queues, and these have no others.

    Raises:
        ViolationError: something does not hold.
    """
    light = store.light
    if light is None:
        return
    expected: dict[tuple[str, bytes], list[LightPlace]] = {}
    for found in log.records:
        record, at = found.record, found.record.physical_offset
        is_dead = store.config.incarnations.is_dead(record.topic, at)
        if is_dead or not sys_flag.is_queued(record.sys_flag):
            continue
        for name, (_, offset) in places_of(encode_properties(record.properties)).items():
            places = expected.setdefault((record.topic, name), [])
            places.append(LightPlace(offset, at, record.size))
    for (topic, name), places in expected.items():
        read = light.places(topic, name, 0, 1 << 20)
        require(read == places, f"{name!r} has {read}, not {places}")
        require(light.last(topic, name) == places[-1], f"the newest message of {name!r}")
    topics = {topic for topic, _ in expected}
    require(set(light.topics()) >= topics, f"light queues of {light.topics()}, not {topics}")
    for topic in light.topics():
        count = sum(1 for other, _ in expected if other == topic)
        require(light.count(topic) == count, f"{topic}: {light.count(topic)} light queues")
