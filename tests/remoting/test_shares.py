"""What one client may use up of a table that all share."""

from __future__ import annotations

import random

import pytest

from mqlake.remoting.shares import Shares, Use, owner_of


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("10.0.0.7:1234", "10.0.0.7"),
        ("unknown:0", "unknown"),
        ("not connected", ""),
        ("[::1]:80", "::/64"),
        ("[fe80::1%eth0]:80", "fe80::/64"),
        ("[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64"),
        ("[::ffff:10.0.0.7]:80", "10.0.0.7"),
    ],
)
def test_entries_count_to_the_address_of_a_client(address: str, owner: str) -> None:
    assert owner_of(address) == owner


@pytest.mark.parametrize("percent", [1, 20, 50, 100])
@pytest.mark.parametrize("most", [1, 2, 3, 10, 1000])
def test_one_client_leaves_room_for_others(percent: int, most: int) -> None:
    shares, used = Shares(lambda: percent), 0

    def add(owner: str) -> bool:
        nonlocal used
        if shares.refusal(owner, used, most, "maxThings") is not None:
            return False
        shares.add(owner)
        used += 1
        return True

    while add("greedy"):
        pass
    share = max(1, most * percent // 100)
    assert used == max(share, most // 2)
    has_room = used < most
    assert add("other") is has_room, "another client has its share while there is room"
    refusal = shares.refusal("greedy", used, most, "maxThings")
    assert refusal is not None
    assert "maxThings" in refusal
    assert ("maxAddressShare" in refusal) is (used < most)
    shares.add("greedy", -shares.of("greedy"))
    used = shares.of("other")
    has_room = used < most
    assert add("greedy") is has_room


def test_shares_are_kept_in_any_order_of_additions_and_removals() -> None:
    chance = random.Random(1)
    shares, own, most = Shares(lambda: 20), dict.fromkeys("abcdef", 0), 60
    for _ in range(5000):
        owner = chance.choice("aaaabbcdef")
        used = sum(own.values())
        if chance.random() < 0.3 and own[owner]:
            own[owner] -= 1
            shares.add(owner, -1)
            continue
        refusal = shares.refusal(owner, used, most, "maxThings")
        is_free = used + 1 <= most // 2 or own[owner] + 1 <= 12
        assert (refusal is None) is (used + 1 <= most and is_free)
        if refusal is None:
            own[owner] += 1
            shares.add(owner)
        assert all(shares.of(each) == count for each, count in own.items())


def test_entries_that_went_without_notice_do_not_count() -> None:
    shares = Shares(lambda: 20)
    shares.add("a", 100)
    assert shares.refusal("a", 5, 100, "maxThings") is None
    assert Use(60, 100, "maxThings").refusal("a", 10, 20, 11) is not None


def test_entries_that_are_gone_without_notice_count_no_more() -> None:
    shares = Shares(lambda: 50)
    shares.add("a", 60)
    shares.add("b", 30)
    shares.add("c", 1)
    shares.shrink(91)
    assert [shares.of(owner) for owner in "abc"] == [60, 30, 1]
    assert shares.refusal("a", 60, 100, "maxThings") is not None
    shares.shrink(60)
    assert [shares.of(owner) for owner in "abc"] == [39, 19, 0]
    assert shares.refusal("a", 60, 100, "maxThings") is None
    shares.shrink(0)
    assert [shares.of(owner) for owner in "abc"] == [0, 0, 0]
