"""What goes over to the other system comes back as it was."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.formats.kafka.batch import Record, TimestampType
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.formats.record import encode
from mqlake.jobs.convert.mapping import (
    EXACTLY,
    LATEST_STORE_TIME,
    NOWHERE,
    PREFIX,
    MappedMessage,
    Placed,
    store_time,
    to_kafka,
    to_rocketmq,
)

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
TEXTS = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=9
)
HOSTS = st.sampled_from([NOWHERE, "127.0.0.1:10911", "[2001:db8:0:0:0:0:0:1]:80"])
NAMES = st.one_of(
    st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", EXACTLY, "", "a\x01b", "x\x02"]),
    st.sampled_from(
        ["flag", "sysFlag", "storeTimestamp", "bornHost", "storeHost", "reconsumeTimes", "other"]
    ).map(PREFIX.__add__),
    TEXTS,
)
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=9),
    st.integers(-5, 1 << 65).map(lambda number: str(number).encode()),
    st.sampled_from([b"007", b"+1", b"1.2.3.4:5", b"01.2.3.4:5", b"\xff", b"x\x02y", b"", b"{}"]),
    TEXTS.map(str.encode),
)
RECORDS = st.builds(
    Record,
    st.integers(0, 1 << 40),
    LONGS,
    st.just(TimestampType.CREATE_TIME),
    st.just(0),
    key=st.one_of(st.none(), VALUES),
    value=st.one_of(st.none(), st.binary(max_size=20)),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=5).map(tuple),
)


@given(RECORDS, st.integers(0, 1 << 40), st.integers(0, LATEST_STORE_TIME))
@settings(max_examples=500)
def test_any_record_of_kafka_comes_back(record: Record, queue_offset: int, time: int) -> None:
    message = to_rocketmq(record, queue_offset, time)
    back = to_kafka(message, queue_offset)
    expected = NewRecord(record.timestamp, record.key, record.value, list(record.headers))
    assert back == Placed(record.offset, expected)
    fields = {name: getattr(message, name) for name in MappedMessage.__struct_fields__}
    assert encode(topic="t", **fields)


@given(
    st.builds(
        MappedMessage,
        body=st.binary(max_size=20),
        properties=st.dictionaries(
            st.one_of(st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY"]), TEXTS), TEXTS, max_size=5
        ),
        born_timestamp=LONGS,
        store_timestamp=st.integers(0, LATEST_STORE_TIME),
        born_host=HOSTS,
        store_host=HOSTS,
        flag=INTS,
        sys_flag=st.sampled_from([0, 1, 8, 16, 1 | 3 << 8]),
        reconsume_times=INTS,
        prepared_transaction_offset=LONGS,
    ),
    st.integers(0, 1 << 40),
)
@settings(max_examples=300)
def test_any_message_of_rocketmq_comes_back(message: MappedMessage, offset: int) -> None:
    placed = to_kafka(message, offset)
    assert placed.offset == offset
    record = Record(
        placed.offset,
        placed.record.timestamp,
        TimestampType.CREATE_TIME,
        0,
        placed.record.key,
        placed.record.value,
        tuple(placed.record.headers),
    )
    if message.store_timestamp != message.born_timestamp:
        assert store_time(record) == message.store_timestamp
    assert to_rocketmq(record, offset, message.store_timestamp) == message


def test_what_goes_where() -> None:
    message = MappedMessage(
        b"body",
        {"KEYS": "k1 k2", "TAGS": "paid", "UNIQ_KEY": "0A"},
        born_timestamp=17,
        store_timestamp=18,
        born_host="127.0.0.1:5",
        flag=3,
    )
    assert to_kafka(message, 7) == Placed(
        7,
        NewRecord(
            17,
            b"k1 k2",
            b"body",
            [
                ("__rocketmq.storeTimestamp", b"18"),
                ("__rocketmq.bornHost", b"127.0.0.1:5"),
                ("__rocketmq.flag", b"3"),
                ("TAGS", b"paid"),
                ("UNIQ_KEY", b"0A"),
            ],
        ),
    )
    record = Record(
        9, 17, TimestampType.CREATE_TIME, 0, b"\xff", None, (("a", b"1"), ("a", b"2"), ("b", None))
    )
    assert to_rocketmq(record, 8, 17) == MappedMessage(
        b"",
        {
            "a": "1",
            EXACTLY: '{"offset":9,"isNull":true,"key":"/w==",'
            '"headers":[["a","MQ=="],["a","Mg=="],["b",null]]}',
        },
        born_timestamp=17,
        store_timestamp=17,
    )


def test_a_property_of_that_name_that_mqlake_has_not_written() -> None:
    for text in ("{", "7", '{"key":"not base64!"}'):
        found = to_kafka(MappedMessage(b"b", {EXACTLY: text, "KEYS": "k"}, 1, 1), 4)
        assert found == Placed(4, NewRecord(1, b"k", b"b", []))


def test_a_property_cannot_name_an_offset_after_which_there_are_none() -> None:
    """Any producer writes properties: one message ended the conversion of its whole store."""
    for offset in (-1, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, 1 << 90):
        text = f'{{"offset":{offset},"isNull":true}}'
        found = to_kafka(MappedMessage(b"", {EXACTLY: text}, 1, 1), 4)
        assert found == Placed(4, NewRecord(1, None, None, []))
