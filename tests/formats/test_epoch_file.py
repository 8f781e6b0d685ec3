"""The epoch file, and the file of a broker's id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import broker_identity, epoch_file
from mqlake.formats.broker_identity import BrokerIdentity
from mqlake.formats.epoch_file import Epoch


def test_a_file_of_rocketmqs() -> None:
    data = b"1\n1725254278\n1-0\n"
    assert epoch_file.decode(data) == [Epoch(1, 0)]
    assert epoch_file.encode([Epoch(1, 0)]) == data


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 1 << 40)), max_size=20))
def test_what_is_written_is_read(steps: list[tuple[int, int]]) -> None:
    epochs, number, start = list[Epoch](), 0, 0
    for more, further in steps:
        number, start = number + more, start + further
        epochs.append(Epoch(number, start))
    assert epoch_file.decode(epoch_file.encode(epochs)) == epochs


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "first two lines"),
        (b"1\n5\n1-0\n", "checksum"),
        (b"2\n0\n1-0\n", "says that it has 2"),
        (b"1\n0\n1\n", "not an epoch"),
        (b"1\n0\n1-x\n", "not a number"),
        (b"2\n0\n2-0\n1-5\n", "epoch 1 follows epoch 2"),
        (b"2\n0\n1-5\n2-0\n", "begins at"),
        (b"1\n0\n1-99999999999999999999999\n", "not a number"),
    ],
)
def test_damage_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        epoch_file.decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_file_or_refused(data: bytes) -> None:
    for decode in (epoch_file.decode, broker_identity.decode):
        try:
            decode(data)
        except FormatError:
            continue


def test_the_identity() -> None:
    kept = BrokerIdentity("DefaultCluster", "broker-a", 2)
    assert broker_identity.encode(kept) == b"DefaultCluster#broker-a#2"
    applied = kept._replace(check_code="127.0.0.1:10911;1700000000000")
    for each in (kept, applied):
        assert broker_identity.decode(broker_identity.encode(each)) == each


@pytest.mark.parametrize("data", [b"", b"a#b", b"a#b#0", b"a#b#-1", b"a##1", b"a#b#1#c#d"])
def test_a_damaged_identity_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        broker_identity.decode(data)
