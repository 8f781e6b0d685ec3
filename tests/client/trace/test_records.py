"""The text of trace records: what RocketMQ's `TraceDataEncoder` writes."""

from __future__ import annotations

from mqlake.client.trace.records import (
    ConsumeOutcome,
    MessageKind,
    Traced,
    handed_over,
    handled,
    is_wanted,
    sent,
    transaction_ended,
)

MESSAGE = Traced("orders", "ID", "red", "k1 k2", "10.0.0.1:10911")


def test_trace_of_a_sent_message() -> None:
    record = sent(
        MESSAGE,
        MessageKind.DELAYED,
        "G",
        "DefaultRegion",
        at=1_700_000_000_000,
        took=12,
        size=5,
        offset_message_id="OFFSET",
        is_ok=True,
    )
    fields = "Pub,1700000000000,DefaultRegion,G,orders,ID,red,k1 k2,10.0.0.1:10911,5,12,3,OFFSET"
    assert record.text == fields.replace(",", "\x01") + "\x01true\x02"
    assert record.keys == ("ID", "k1", "k2")


def test_trace_of_a_message_without_tags_and_keys() -> None:
    message = MESSAGE._replace(tags=None, keys="")
    record = sent(
        message,
        MessageKind.NORMAL,
        "G",
        "R",
        at=1,
        took=0,
        size=0,
        offset_message_id="O",
        is_ok=False,
    )
    assert record.text == "Pub,1,R,G,orders,ID,null,null,10.0.0.1:10911,0,0,0,O,false".replace(
        ",", "\x01"
    ) + ("\x02")
    assert record.keys == ("ID",)


def test_trace_of_a_consumed_message() -> None:
    properties = {"MSG_REGION": "R", "KEYS": "k1"}
    before = handed_over("ID", properties, "G", "REQUEST", at=5, times=2)
    assert before.text == "SubBefore,5,R,G,REQUEST,ID,2,k1".replace(",", "\x01") + "\x02"
    after = handled("ID", {}, "G", "REQUEST", ConsumeOutcome.FAILED, at=9, took=4)
    text = "SubAfter,REQUEST,ID,4,false,null,4,9,G"
    assert after.text == text.replace(",", "\x01") + "\x02"


def test_trace_of_the_end_of_a_transaction() -> None:
    record = transaction_ended(MESSAGE, "G", "T", "ROLLBACK_MESSAGE", at=3, is_check=True)
    text = "EndTransaction,3,DefaultRegion,G,orders,ID,red,k1 k2,10.0.0.1:10911,2,T"
    assert record.text == text.replace(",", "\x01") + "\x01ROLLBACK_MESSAGE\x01true\x02"


def test_brokers_say_whether_they_want_traces() -> None:
    assert is_wanted({})
    assert is_wanted({"TRACE_ON": "true"})
    assert not is_wanted({"TRACE_ON": "false"})
