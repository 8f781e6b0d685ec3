"""Incomplete frames are kept of any address, and no address uses up the room for them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.broker.lane import layout
from mqlake.broker.lane.rests import Rests
from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import is_compiled

CONNECTIONS = 2 * layout.REST_ROWS + 1
HALF = layout.REST_ROWS // 2


class Kept:
    """Rests, and connections of which each third has an address of its own."""

    def __init__(self) -> None:
        self.state = np.zeros(layout.STATES, np.int64)
        self.rests = Rests(self.state.data)
        self.seats: Longs = np.zeros((layout.SEAT_ROWS, CONNECTIONS), np.int64)
        self.hosts: Bytes = np.zeros(8 * CONNECTIONS, np.uint8)
        for connection in range(1, CONNECTIONS):
            last = connection if connection % 3 == 0 else 1
            self.hosts[8 * connection : 8 * connection + 8] = 10, 0, last >> 8, last & 255, *b"port"

    def host(self, connection: int) -> bytes:
        return self.hosts[8 * connection : 8 * connection + 8].tobytes()

    def keep(self, connection: int) -> bool:
        """Keep a rest if there is room, as Python does."""
        if has_room := self.rests.has_room(self.hosts, self.host(connection)):
            self.rests.keep(self.seats, connection, b"rest", 0)
        return has_room

    def keep_in_kernel(self, connection: int) -> bool:
        """Do the same, as the kernel does."""
        from mqlake.broker.lane.compiled.rests import keep_rest

        self.state[layout.CONNECTION], self.state[layout.POSITION] = connection, 0
        self.state[layout.RECEIVED] = 4
        data = np.zeros(16, np.uint8)
        rests = self.rests
        return keep_rest(self.state, self.seats, rests.rows, rests.data, data, self.hosts)


def test_one_address_leaves_room_for_others() -> None:
    kept = Kept()
    greedy = [each for each in range(1, CONNECTIONS) if each % 3]
    assert sum(map(kept.keep, greedy)) == HALF
    others = list(range(3, CONNECTIONS, 3))
    assert sum(map(kept.keep, others)) == layout.REST_ROWS - HALF
    assert not kept.keep(greedy[-1])


def test_an_address_may_have_its_share_beyond_half() -> None:
    kept = Kept()
    assert all(map(kept.keep, range(3, 3 * HALF + 1, 3)))
    assert sum(map(kept.keep, range(1, CONNECTIONS, 3))) == layout.REST_SHARE


@pytest.mark.skipif(not is_compiled(), reason="compares with a compiled kernel")
@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_keeps_what_is_kept_elsewhere(seed: int) -> None:
    dice, ours, theirs = random.Random(seed), Kept(), Kept()
    refused = 0
    for _ in range(2000):
        connection = dice.randrange(1, CONNECTIONS)
        if ours.seats[layout.REST, connection]:
            if dice.random() < 0.5:
                assert len(ours.rests.take(ours.seats, connection)) == 4
                assert len(theirs.rests.take(theirs.seats, connection)) == 4
            continue
        is_kept = ours.keep(connection)
        assert theirs.keep_in_kernel(connection) == is_kept
        refused += not is_kept
        assert len(ours.rests) == len(theirs.rests)
    assert refused > 20
