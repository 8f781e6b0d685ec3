"""The JSON form of a record."""

from __future__ import annotations

import base64
import json

from hypothesis import given

from mqlake.formats import record
from mqlake.formats.message_json import to_json
from tests.formats.golden_log import records
from tests.formats.strategies import RECORDS

NAMES = [
    "topic",
    "queueId",
    "queueOffset",
    "physicalOffset",
    "size",
    "bodyCrc",
    "sysFlag",
    "flag",
    "bornTimestamp",
    "storeTimestamp",
    "bornHost",
    "storeHost",
    "reconsumeTimes",
    "preparedTransactionOffset",
    "properties",
    "body",
    "msgId",
]


def test_same_names_and_values_as_java_where_both_have_them() -> None:
    for expected, data in records("rmq5-clean"):
        actual = to_json(record.decode(data))
        assert list(actual) == NAMES
        for name in set(NAMES) & set(expected) - {"bornHost", "storeHost"}:
            assert actual[name] == expected[name]
        assert "/" + actual["bornHost"] == expected["bornHost"]
        assert actual["bodyCrc"] == expected["bodyCRC"]
        assert actual["msgId"] == expected["offsetMsgId"]


@given(RECORDS)
def test_it_is_json_and_keeps_the_body(data: bytes) -> None:
    message = record.decode(data)
    again = json.loads(json.dumps(to_json(message)))
    assert again == to_json(message)
    assert base64.b64decode(again["body"]) == message.body
