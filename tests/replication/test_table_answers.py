"""What a slave takes from the tables of its master."""

from __future__ import annotations

import msgspec
import pytest

from mqlake.protocol.errors import BodyError
from mqlake.remoting.slices import run_at_once
from mqlake.replication.table_answers import consumer_offsets


def offsets(table: bytes) -> dict[str, dict[int, int]]:
    return run_at_once(consumer_offsets({"offsetTable": msgspec.Raw(table)}))


def test_one_offset_that_is_none_does_not_keep_the_others_from_a_slave() -> None:
    """RocketMQ's brokers store whatever a client commits."""
    found = offsets(b'{"a@g":{"0":-2,"1":-1,"2":9},"b@g":{"0":-9223372036854775808,"1":3}}')
    assert found == {"a@g": {1: -1, 2: 9}, "b@g": {1: 3}}


@pytest.mark.parametrize(
    "table", [b'{"a@g":{"0":9223372036854775808}}', b'{"a@g":{"-1":0}}', b'{"a@g":{"70000":0}}']
)
def test_a_table_that_no_broker_has_is_refused(table: bytes) -> None:
    with pytest.raises(BodyError):
        offsets(table)
