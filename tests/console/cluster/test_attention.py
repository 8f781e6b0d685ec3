"""What of a broker's state needs attention; a broker may answer anything."""

from __future__ import annotations

import pytest

from mqlake.console.cluster.attention import clock_difference, number_in, warnings_of
from mqlake.protocol.bodies.ha import HaConnectionInfo, HaRuntimeInfo

NOW = 1_700_000_000_000
FINE = {
    "bootTimestamp": str(NOW - 3_723_000),
    "runtime": "[ 0 days, 1 hours, 2 minutes, 3 seconds ]",
    "commitLogDiskRatio": "0.5",
}


def texts(facts: dict[str, str] | None, ha: HaRuntimeInfo | None = None, slaves: int = 0) -> str:
    found = warnings_of(facts, {"brokerPermission": "6"}, ha, slaves, NOW)
    return "\n".join(each.text for each in found)


def test_nothing_needs_attention() -> None:
    assert texts(FINE) == ""


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"commitLogDiskRatio": "0.76"}, "76% full"),
        ({"commitLogDiskRatio": "0.95"}, "it may refuse messages"),
        ({"notWritable": "the disk is full"}, "It refuses messages: the disk is full"),
        ({"failure_flush": "I/O error", "failures_flush": "3"}, "The task flush fails (3 times)"),
        ({"dispatchBehindBytes": str(100 << 20)}, "the last 100 MiB"),
        ({"bootTimestamp": str(NOW)}, "Its clock is 3,723 s ahead of the console's"),
    ],
)
def test_names_what_needs_attention(facts: dict[str, str], said: str) -> None:
    assert said in texts(FINE | facts)


def test_a_broker_that_is_silent_or_refuses() -> None:
    assert texts(None) == "It does not answer."
    assert texts({}) == "It does not show its state to this user."


def test_slaves_that_copy_nothing_or_lack_much() -> None:
    slow = HaConnectionInfo(addr="1.2.3.4:5", diff=2 << 20, in_sync=False)
    found = texts(FINE, HaRuntimeInfo(ha_connection_info=[slow]), 2)
    assert "Its slave 1.2.3.4:5 lacks 2.0 MiB" in found
    assert "1 of its 2 slaves copy nothing." in found


def test_a_read_only_broker() -> None:
    found = warnings_of(FINE, {"brokerPermission": "4"}, None, 0, NOW)
    assert "read-only" in found[0].text


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-inf", "1e400", "²", "9" * 5000, "\0"])
def test_rubbish_is_no_number(text: str) -> None:
    facts = dict.fromkeys(("bootTimestamp", "commitLogDiskRatio", "dispatchBehindBytes"), text)
    assert number_in(facts, "bootTimestamp") == 0.0
    assert clock_difference(FINE | facts, NOW) is None
    assert texts(FINE | facts) == ""
