"""Answers that list very many members."""

from __future__ import annotations

import pytest

from mqlake.protocol.errors import RemotingError
from mqlake.remoting import members as module
from mqlake.remoting.members import Members


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5000])
def test_members_are_those_that_were_appended(count: int) -> None:
    members, expected = Members(), [b'"%d"' % number for number in range(count)]
    for member in expected:
        members.append(member)
    assert b",".join(members) == b",".join(expected)
    assert len(members) == count


def test_members_that_no_client_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER", 100)
    members = Members()
    for _ in range(10):
        members.append(bytes(9))
    with pytest.raises(RemotingError, match="more than 100 bytes, which no client reads"):
        members.append(b"")
