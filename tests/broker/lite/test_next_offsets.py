"""The table of next offsets knows what a dictionary would know."""

from __future__ import annotations

import random

from mqlake.broker.state.lite.next_offsets import NextOffsets
from mqlake.kernels.rows.table import FULL

LAST = (1 << 64) - 1


def test_knows_what_a_dictionary_knows() -> None:
    dice, table, expected = random.Random(1), NextOffsets(), dict[int, tuple[int, int]]()
    # Hashes of few different ends, of which the last ones of a table continue at its beginning.
    known = [dice.choice((0, LAST)) ^ (dice.randrange(1 << 16) << 40) for _ in range(400)]
    known += [dice.getrandbits(64) for _ in range(2000)]
    for step in range(20_000):
        name_hash, topic = dice.choice(known), dice.randrange(1, 4)
        if not table.has_room:
            table.grow()
        following = step if name_hash not in expected else expected[name_hash][0] + 1
        table.put(name_hash, following, topic)
        expected[name_hash] = following, topic
        if dice.random() < 0.001:
            table.forget(topic)
            expected = {key: each for key, each in expected.items() if each[1] != topic}
        name_hash = dice.choice(known)
        assert table.get(name_hash) == expected.get(name_hash, (None,))[0]
    assert len(expected) > 1000
    for name_hash in known:
        assert table.get(name_hash) == expected.get(name_hash, (None,))[0]


def test_has_a_free_row_at_any_time() -> None:
    table = NextOffsets()
    for number in range(1000):
        while not table.has_room:
            table.grow()
        table.put(number << 32, number, 1)
        assert len(table) == number + 1
        assert len(table) * FULL[1] <= len(table.rows) * FULL[0]


def test_forgotten_queues_make_room_when_the_table_grows() -> None:
    table = NextOffsets()
    for number in range(40):
        table.put(number, number, number % 2 + 1)
    table.forget(1)
    assert [table.get(number) for number in range(4)] == [None, 1, None, 3]
    table.put(0, 7, 1)
    table.grow()
    assert len(table) == 21
    assert [table.get(number) for number in range(4)] == [7, 1, None, 3]
