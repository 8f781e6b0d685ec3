"""What the revive topic keeps, and receipts, as RocketMQ reads and writes them."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.broker.pop.check_points import Ack, CheckPoint, Key, ack_message, point_message
from mqlake.protocol.body import decode_body
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import PopInfo, Receipt, parse_receipt
from mqlake.protocol.retry_topics import mark_of, marked, normal_topic, retry_topic

KEY = Key("T", "G", 3, 100, 1_700_000_000_000)
POINT = CheckPoint(
    start_offset=100,
    pop_time=KEY.pop_time,
    invisible_time=60_000,
    count=3,
    queue_id=3,
    topic="T",
    group="G",
    distances=[0, 2, 5],
    broker_name="b",
)


def test_a_check_point_in_rocketmqs_words() -> None:
    message = point_message(POINT, "REVIVE", 2)
    assert json.loads(message.body) == {
        "so": 100,
        "pt": KEY.pop_time,
        "it": 60_000,
        "n": 3,
        "q": 3,
        "t": "T",
        "c": "G",
        "d": [0, 2, 5],
        "bn": "b",
    }
    assert (message.topic, message.queue_id, message.tags) == ("REVIVE", 2, "ck")
    assert message.properties == {
        "TIMER_DELIVER_MS": str(KEY.pop_time + 59_000),
        "UNIQ_KEY": f"T@3@100@G@{KEY.pop_time}@b@ck",
    }
    assert decode_body(CheckPoint, message.body) == POINT
    assert POINT.key == KEY


def test_a_suspended_check_point_in_rocketmqs_words() -> None:
    written = b'{"so":1,"pt":2,"it":3,"n":1,"q":0,"t":"T","c":"G","d":[0],"bm":0,"sp":%s}'
    assert decode_body(CheckPoint, written % b"true").is_suspended
    assert not decode_body(CheckPoint, written % b"false").is_suspended
    point = msgspec.structs.replace(POINT, is_suspended=True)
    assert json.loads(point_message(point, "REVIVE", 2).body)["sp"] is True


@pytest.mark.parametrize(
    ("offsets", "tag", "said"), [([102], "ack", {"ao": 102}), ([100, 105], "bAck", None)]
)
def test_acknowledgements_in_rocketmqs_words(
    offsets: list[int], tag: str, said: dict[str, int] | None
) -> None:
    message = ack_message(KEY, offsets, "b", 5, "REVIVE", 2)
    found = json.loads(message.body)
    common = {"so": 100, "c": "G", "t": "T", "q": 3, "pt": KEY.pop_time, "bn": "b"}
    assert found == common | (said or {"aol": offsets})
    assert message.tags == tag
    again = decode_body(Ack, message.body)
    assert (again.key, again.offsets) == (KEY, offsets)


@given(st.sets(st.integers(90, 120)))
def test_what_is_missing(acknowledged: set[int]) -> None:
    point = decode_body(CheckPoint, point_message(POINT, "R", 0).body)
    for offset in acknowledged:
        point.acknowledge(offset)
    assert point.missing == [at for at in (100, 102, 105) if at not in acknowledged]


def test_an_old_check_point_has_no_distances() -> None:
    point = CheckPoint(10, 1, 2, 3, 0, "T", "G")
    point.acknowledge(11)
    point.acknowledge(13)
    assert point.offsets == [10, 11, 12]
    assert point.missing == [10, 12]


@given(
    st.integers(0, 2**60),
    st.integers(0, 7),
    st.sampled_from("012"),
    st.text("abc-_", max_size=5),
    st.integers(0, 9),
)
def test_receipts_come_back(
    number: int, revive: int, mark: str, broker: str, queue_id: int
) -> None:
    receipt = Receipt(number, number, number, revive, mark, broker, queue_id, number)
    assert parse_receipt(receipt.text, 8) == receipt


@given(st.text("0123456789 -ab", max_size=60))
def test_any_text_is_a_receipt_or_none(text: str) -> None:
    with suppress(RemotingError):
        found = parse_receipt(text, 8)
        assert found.revive_queue_id < 8 or found.is_ordered


@pytest.mark.parametrize("is_v2", [False, True])
def test_retry_topics(is_v2: bool) -> None:
    name = retry_topic("T_x", "G", is_v2=is_v2)
    assert name == ("%RETRY%G+T_x" if is_v2 else "%RETRY%G_T_x")
    assert normal_topic(name, "G") == "T_x"
    assert marked(mark_of(name), "T_x", "G") == name
    assert (normal_topic("T", "G"), marked(mark_of("T"), "T", "G")) == ("T", "T")


def test_what_an_answer_says() -> None:
    info = PopInfo()
    info.add("T", 0, 5, [5, 6])
    info.add("%RETRY%G_T", 0, 7, [7])
    info.add_counts("T", 0, [(5, 2)], 0)
    assert info.start_offset_info == "0 0 5;1 0 7"
    assert info.msg_offset_info == "0 0 5,6;1 0 7"
    assert info.order_count_info == "0 qo0%5 2;0 0 0"
