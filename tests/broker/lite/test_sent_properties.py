"""The lite topic of typical properties is the one that decoded properties name."""

from __future__ import annotations

import random

from mqlake.broker.state.lite.names import is_lite_topic
from mqlake.broker.state.lite.sent_properties import (
    longest_place,
    place,
    typical_lite_topic,
    waits_by,
)
from mqlake.formats.properties import LITE_TOPIC, decode_properties

PAIRS = (
    "KEYS\x01k",
    "__LITE_TOPIC\x01session-1",
    "__LITE_TOPIC\x01" + "a" * 128,
    "__LITE_TOPIC\x01" + "a" * 129,
    "__LITE_TOPIC\x01",
    "__LITE_TOPIC\x01a\x01b",
    "__LITE_TOPIC\x01a b",
    "__LITE_TOPIC\x01ü",
    "x__LITE_TOPIC\x01a",
    "__LITE_TOPIC",
    "KEYS\x01__LITE_TOPIC\x01a",
    "DELAY\x013",
    "DELAY\x010",
    "TIMER_DELIVER_MS\x011",
    "TIMER_DELAY_MS\x011",
    "TIMER_DELAY_SEC\x010",
    "TRAN_MSG\x01true",
    "TRAN_MSG\x01false",
    "é\x01ü",
    "",
)


def test_the_typical_lite_topic_is_the_decoded_one() -> None:
    dice, typical = random.Random(1), 0
    for _ in range(20_000):
        pairs = [dice.choice(dice.choice((PAIRS, PAIRS[:1], PAIRS[1:3]))) for _ in range(3)]
        properties = "\x02".join([*pairs, dice.choice(("", "CLUSTER\x01c\x02"))]).encode()
        found = typical_lite_topic(properties)
        if found is not None:
            typical += 1
            decoded = decode_properties(properties)
            assert decoded[LITE_TOPIC] == found, properties
            assert is_lite_topic(found)
            assert waits_by(decoded) is None
    assert typical > 100


def test_properties_of_clients_are_typical() -> None:
    assert typical_lite_topic(b"KEYS\x01k\x02__LITE_TOPIC\x01s-1\x02UNIQ_KEY\x01A\x02") == "s-1"


def test_the_longest_place_has_the_last_offset() -> None:
    for queue in ("%LMQ%$P$a", "%LMQ%$ü$a"):
        assert len(place(queue)) == longest_place(queue)
        assert place(queue, 7) < place(queue)
