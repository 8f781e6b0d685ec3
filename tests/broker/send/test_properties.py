"""Properties as they are stored."""

from __future__ import annotations

from datetime import datetime

import pytest

from mqlake.broker.send.properties import StoredProperties, without_dropped
from mqlake.broker.settings import BrokerSettings
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.formats.message_id import UniqueKey
from mqlake.formats.properties import decode_properties
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.unique_keys import UniqueKeys
from tests.crash.clock import ManualClock
from tests.store.live_parts import NOW

SETTINGS = BrokerSettings(broker_cluster_name="c1", region_id="r1", trace_on=False)
OWN = {"CLUSTER": "c1", "MSG_REGION": "r1", "TRACE_ON": "false"}


def keys() -> UniqueKeys:
    return UniqueKeys("10.1.2.3:10911", ManualClock(NOW))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UNIQ_KEY\x01K\x02A\x01b\x02", {"UNIQ_KEY": "K", "A": "b"}),
        ("A\x01b\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K", "A": "b"}),
        ("A\x01b\x02UNIQ_KEY\x01K", {"UNIQ_KEY": "K", "A": "b"}),
        ("UNIQ_KEY\x01K\x02XUNIQ_KEY\x01b\x02", {"UNIQ_KEY": "K", "XUNIQ_KEY": "b"}),
        ("UNIQ_KEY\x01J\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K"}),
        ("MSG_REGION\x01x\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K"}),
        ("POP_CK\x01x\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K"}),
        ("TIMER_DEL_UNIQKEY\x01T+x\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K"}),
        (
            "INNER_MULTI_DISPATCH\x01%LMQ%$a$b\x02INNER_MULTI_QUEUE_OFFSET\x019\x02UNIQ_KEY\x01K\x02",
            {"UNIQ_KEY": "K"},
        ),
        ("KEYS\x01CLUSTER\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K", "KEYS": "CLUSTER"}),
        ("name\x01ünï → 😀\x02UNIQ_KEY\x01K\x02", {"UNIQ_KEY": "K", "name": "ünï → 😀"}),
    ],
)
def test_what_a_producer_gave_and_where_it_came_in(text: str, expected: dict[str, str]) -> None:
    stored, key = StoredProperties(SETTINGS, keys()).of(text)

    assert decode_properties(stored) == expected | OWN
    assert key == "K"


@pytest.mark.parametrize(
    "text",
    [None, "", "A\x01b\x02", "XUNIQ_KEY\x01b\x02", "TRACE_ON\x01true\x02", "UNIQ_KEY\x01\x02"],
)
def test_a_message_without_a_unique_key_gets_one(text: str | None) -> None:
    properties = StoredProperties(SETTINGS, keys())
    first, second = properties.of(text), properties.of(text)

    assert first != second
    for stored, key in (first, second):
        assert decode_properties(stored)["UNIQ_KEY"] == key
        assert UniqueKey.parse(key).ip == bytes((10, 1, 2, 3))


def test_keys_count_from_the_start_of_the_month_it_is() -> None:
    last = datetime(2026, 1, 31, 23, 59, 59)  # noqa: DTZ001 (local time)
    clock = ManualClock(int(last.timestamp() * 1000))
    keys = UniqueKeys("10.1.2.3:10911", clock)
    day = 86_400_000
    assert UniqueKey.parse(keys.next()).milliseconds == 31 * day - 1000
    clock.forward(2000)
    assert UniqueKey.parse(keys.next()).milliseconds == 1000
    clock.forward(28 * day)
    assert UniqueKey.parse(keys.next()).milliseconds == 1000


LIGHT = b"INNER_MULTI_DISPATCH\x01%LMQ%$a$b\x02INNER_MULTI_QUEUE_OFFSET\x019\x02"


def test_messages_of_a_batch_are_in_no_light_queue() -> None:
    messages = [(1, LIGHT, b"A\x01b\x02" + LIGHT + b"C\x01d\x02"), (2, b"x", LIGHT), (3, b"", b"")]
    assert without_dropped(encode_batch(messages)) == encode_batch(
        [(1, LIGHT, b"A\x01b\x02C\x01d\x02"), (2, b"x", b""), (3, b"", b"")]
    )


@pytest.mark.parametrize("name", ["POP_CK", "TIMER_DEL_UNIQKEY", "INNER_MULTI_QUEUE_OFFSET"])
def test_messages_of_a_batch_have_no_property_that_producers_must_not_set(name: str) -> None:
    """A forged receipt of pop consumption would acknowledge another message."""
    forged = f"{name}\x01x\x02".encode()
    messages = [(1, b"x", b"A\x01b\x02" + forged), (2, b"y", forged[:-1]), (3, forged, b"C\x01d")]
    assert without_dropped(encode_batch(messages)) == encode_batch(
        [(1, b"x", b"A\x01b\x02"), (2, b"y", b""), (3, forged, b"C\x01d")]
    )


def test_a_malformed_batch_stays_as_it_is() -> None:
    body = encode_batch([(1, b"x", LIGHT)])[:-1]
    assert without_dropped(body) == body


def test_a_long_batch_that_says_so_is_refused() -> None:
    with pytest.raises(RemotingError, match="INNER_MULTI_DISPATCH"):
        without_dropped(encode_batch([(0, b"", b"")] * 1000 + [(0, b"", LIGHT)]))
    assert len(list(decode_batch(without_dropped(encode_batch([(0, b"", LIGHT)] * 1000))))) == 1000
