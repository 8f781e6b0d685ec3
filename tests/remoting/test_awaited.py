from __future__ import annotations

from itertools import count

from mqlake.remoting.awaited import AwaitedResponses


def test_the_numbers_of_requests_begin_again_after_the_last_positive_one() -> None:
    awaited = AwaitedResponses()
    assert [awaited.next_opaque() for _ in range(2)] == [1, 2]
    awaited._opaques = count(2**31 - 2)
    assert [awaited.next_opaque() for _ in range(3)] == [2**31 - 2, 2**31 - 1, 1]
