"""Bodies: fastjson's dialect, and what brokers register, plain and compressed."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies import register
from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs, decode_register
from mqlake.protocol.bodies.route import (
    BrokerData,
    QueueData,
    TopicQueueMappingInfo,
    TopicRouteData,
)
from mqlake.protocol.body import decode_body, encode_body, encode_unquoted
from mqlake.protocol.errors import BodyError
from mqlake.remoting.slices import run_at_once

ROUTE = TopicRouteData([QueueData("a", 4, 4, 6)], [BrokerData("c", "a", {0: "h:1", 2: "h:2"})])
BODY = RegisterBody(
    TopicConfigs(
        {
            "T": Topic("T", 4, 8, 6, attributes={"+message.type": "a b"}),
            "größe": Topic("größe", 1, 1, 2),
        },
        DataVersion(5, 1, 1_700_000_000_000),
        {"T": TopicQueueMappingInfo("T", total_queues=2, bname="a", curr_id_map={0: 1})},
    ),
    ["h:9"],
)


def test_standard_json_has_keys_in_quotes() -> None:
    assert json.loads(encode_body(ROUTE))["brokerDatas"][0]["brokerAddrs"]["0"] == "h:1"
    assert decode_body(TopicRouteData, encode_body(ROUTE)) == ROUTE


def test_bodies_for_old_clients_have_keys_without_quotes() -> None:
    assert b'"brokerAddrs":{0:"h:1",2:"h:2"}' in encode_unquoted(ROUTE)
    assert decode_body(TopicRouteData, encode_unquoted(ROUTE)) == ROUTE


def test_null_is_absent_and_unknown_fields_are_ignored() -> None:
    data = b'{"queueDatas":null,"x":1,"brokerDatas":[{"brokerName":"a","zoneName":null}]}'
    assert decode_body(TopicRouteData, data) == TopicRouteData([], [BrokerData("", "a")])


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"queueDatas":1}'])
def test_other_bodies_are_refused(data: bytes) -> None:
    with pytest.raises(BodyError, match="the body is not a TopicRouteData: "):
        decode_body(TopicRouteData, data)


def test_a_registration_is_decoded_as_it_was_encoded() -> None:
    assert run_at_once(decode_register(BODY.encode(), compressed=False)) == BODY
    assert run_at_once(decode_register(BODY.compress(), compressed=True)) == BODY
    assert run_at_once(decode_register(b"", compressed=True)) == RegisterBody()


def test_releases_before_5_register_no_mappings() -> None:
    parts = zlib.decompress(BODY.compress())
    mapping = encode_body(BODY.topic_config_serialize_wrapper.topic_queue_mapping_info_map["T"])
    old = run_at_once(decode_register(zlib.compress(parts[: -len(mapping) - 8]), compressed=True))
    assert old.topic_config_serialize_wrapper.topic_queue_mapping_info_map == {}
    assert old.filter_server_list == ["h:9"]


def _part(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


VERSION = _part(b"{}")


@pytest.mark.parametrize(
    ("inflated", "reason"),
    [
        (b"", "ends within a length"),
        (b"\x00\x00\x00\x09{}", "a part of 9 bytes"),
        (b"\xff\xff\xff\xff{}", "a part of -1 bytes"),
        (VERSION + b"\x7f\xff\xff\xff", "ends within a length"),
        (VERSION + b"\x00\x00\x00\x01" + _part(b"T 4 4"), "no topic in b'T 4 4'"),
        (VERSION + b"\x00\x00\x00\x01" + _part(b"T x 4 6 TAG"), "no topic"),
        (_part(b"[]"), "not a DataVersion"),
    ],
)
def test_damaged_registrations_are_refused(inflated: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        run_at_once(decode_register(zlib.compress(inflated), compressed=True))


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "MAX_INFLATED", 1000)
    with pytest.raises(BodyError, match="too long"):
        run_at_once(decode_register(zlib.compress(bytes(100_000)), compressed=True))
    for data in (b"x", zlib.compress(bytes(100))[:-5]):
        with pytest.raises(BodyError, match="the compressed body"):
            run_at_once(decode_register(data, compressed=True))


def test_a_registration_with_a_static_topic_as_fastjson_writes_it() -> None:
    """It is long, and the integer keys of one map stand without quotes."""
    topics = {f"T{number}": Topic(f"T{number}", 4, 4, 6) for number in range(1000)}
    topics["odd"] = Topic("odd", 4, 4, 6, attributes={"+message.type": 'x,1:{2:"'})
    mapping = TopicQueueMappingInfo("T1", total_queues=2, bname="a", curr_id_map={0: 1, 1: 7})
    body = RegisterBody(TopicConfigs(topics, DataVersion(5, 1, 1), {"T1": mapping}), [])
    data = body.encode().replace(b'{"0":1,"1":7}', b"{0:1,1:7}")
    assert len(data) > 100_000
    assert b"{0:1,1:7}" in data
    assert run_at_once(decode_register(data, compressed=False)) == body


@pytest.mark.parametrize("piece", [1, 7, 100, 2000])
def test_a_long_registration_is_decoded_in_pieces(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Wherever the text is split: within attributes, and in strings that look like JSON."""
    monkeypatch.setattr(register, "_PIECE", piece)
    odd = {"a": '},"b":{"', "c": '{"x":1},"y', "d\\": '\\"},"'}
    topics = {
        name: Topic(name, 4, 4, 6, attributes=odd if number % 3 else {})
        for number, name in enumerate([*(f"T{n}" for n in range(200)), '},"', "größe"])
    }
    mappings = {
        f"T{n}": TopicQueueMappingInfo(f"T{n}", total_queues=2, bname="a", curr_id_map={0: n})
        for n in range(50)
    }
    body = RegisterBody(TopicConfigs(topics, DataVersion(5, 1, 1), mappings), ["h:1"])
    assert run_at_once(decode_register(body.encode(), compressed=False)) == body
    steps = sum(1 for _ in decode_register(body.encode(), compressed=False))
    assert steps > len(topics) + len(mappings) + (piece < 2000)
    for broken in (body.encode()[:-3], body.encode().replace(b'"T150":', b'"T150",')):
        with pytest.raises(BodyError):
            run_at_once(decode_register(broken, compressed=False))


def test_java_gets_each_field_of_where_a_group_begins() -> None:
    """RocketMQ's broker fails without a type."""
    change = LiteSubscriptionChange("PARTIAL_ADD", "c", "g", "t", ["a"], LiteOffsetOption())
    encoded = json.loads(encode_body(LiteSubscriptionChanges([change])))
    (found,) = encoded["subscriptionSet"]
    assert found["offsetOption"] == {"type": "POLICY", "value": 0}
