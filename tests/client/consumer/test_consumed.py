"""Messages as consumers receive them."""

from __future__ import annotations

import msgspec

from mqlake.client.message_json import message_from_json, message_to_json
from tests.client.messages import consumed


def test_a_received_message_has_its_priority() -> None:
    message = consumed(0)
    assert message.priority is None
    message.properties["_SYS_MSG_PRIORITY_"] = "7"
    assert message.priority == 7
    again = message_from_json(msgspec.json.encode(message_to_json(message)), "t")
    assert (again.priority, again.properties) == (7, {})


def test_a_consumed_message_is_sent_anew_without_what_rocketmq_added() -> None:
    message = consumed(0)
    message.properties.update(
        {
            "RETRY_TOPIC": "other",
            "RECONSUME_TIME": "3",
            "TIMER_DELAY_MS": "5000",
            "TRAN_MSG": "true",
            "mine": "kept",
        }
    )
    again = message_from_json(msgspec.json.encode(message_to_json(message)), "t")
    assert again.properties == {"mine": "kept"}
    assert not again.is_delayed
