"""Signed pulls, honest and forged: the lane's kernel accepts none that the checks refuse."""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING

import numpy as np

from mqlake.auth.authentication import Authentication
from mqlake.broker.pull.commits import GroupTopic
from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import FormatError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pull import PullHeader
from mqlake.protocol.signature import ACCESS_KEY, Credentials
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.auth.forgeries.gate import EVERYBODY, GONE, POOR, ROOT, Gate, is_signed
from tests.auth.forgeries.signed_sends import (
    PEER,
    Pairs,
    binary_header,
    changed_fields,
    json_header,
    sign,
)
from tests.mutated_bytes import mutated
from tests.protocol.messages import frame

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes

_ODD = (0, 1, 0x22, 0x2C, 0x30, 0x31, 0x5C, 0x7F, 0xFF)
_CODE = int(RequestCode.PULL_MESSAGE)
_QUEUES = 4
_USUAL = {
    "queueId": "0", "maxMsgNums": "32", "sysFlag": "3", "suspendTimeoutMillis": "15000",
    "commitOffset": "7", "topic": "t", "queueOffset": "12", "expressionType": "TAG",
    "subVersion": "1700000000000", "consumerGroup": "g",
}  # fmt: skip
_NUMBERS = ("queueId", "commitOffset", "queueOffset")
_DIGITS = ("0", "1", "3", "12", "120", "9" * 18, "9" * 19, "01", "-1", "", " 1", "1e3")
_VALUES = ("", "x", "größer", "t", "\\", "1")
_MORE = ("bname", "subscription", "maxMsgBytes", "Z", "Signatur", "signature", "_UNIQUE_KEY_QUERY")


class PullGate:
    """The lane's kernel of pulls, with the users of a gate.

    It remembers pulls as a broker does, and has no queues: a pull that it accepts is one whose
    queue it asks for.
    """

    def __init__(self, gate: Gate) -> None:
        from mqlake.broker.lane.pull_kernel import PullKernel
        from mqlake.broker.lane.pull_layout import NOW_GENERATION
        from mqlake.broker.lane.pull_tables import PullTables
        from mqlake.broker.lane.user_table import UserTable

        users = UserTable()
        self._checks = Authentication(gate.accounts, ())
        self._numbers: dict[str, int] = {}
        for user in gate.accounts.state.users.values():
            # All of them: who is not enabled is not in the table of a broker.
            number = users.add(user.username, user.password)
            assert number is not None
            self._numbers[user.username] = number
        self._users, self._tables = users, PullTables(np.zeros((1, 3), np.int64), users)
        self._data: Bytes = np.zeros(1 << 16, np.uint8)
        self._answers: Bytes = np.zeros(1 << 12, np.uint8)
        self._kernel = PullKernel(self._tables, self._data, self._answers)
        self._tables.arrays.state[NOW_GENERATION] = 1

    def _reason(self, data: bytes, user: str) -> int:
        from mqlake.broker.lane import pull_layout as layout

        state = self._tables.arrays.state
        self._data[: len(data)] = np.frombuffer(data, np.uint8)
        state[layout.POSITION] = state[layout.TO] = 0
        state[layout.RECEIVED], state[layout.SIGNER] = len(data), self._numbers[user]
        return self._kernel.serve(self._data, self._answers)

    def accepts(self, data: bytes, user: str) -> bool:
        """Return whether a frame is a typical pull that a user has signed.

        Args:
            user: who has signed the last request of its connection.
        """
        from mqlake.broker.lane.pull_layout import LOOK

        return self._reason(data, user) == LOOK

    def learn(self, data: bytes) -> None:
        """Remember a frame, if it is a pull that the checks accept."""
        from mqlake.broker.lane.pull_decisions import decode, is_read_as
        from mqlake.broker.lane.pull_layout import NEW
        from mqlake.broker.lane.pull_tables import AcceptedPulls
        from mqlake.broker.lane.pull_texts import GappedText, signed_text, text_of_key

        if self._reason(data, ROOT.access_key) != NEW:
            return
        end, kind = 8 + int.from_bytes(data[5:8]), data[4]
        size = self._kernel.read(data[8:end], kind)
        text = text_of_key(self._tables.arrays.key, size)
        try:
            request = decode(kind, data[8:end])
            user, header = self._checks.user(request, PEER), request.header(PullHeader)
        except (RemotingError, FormatError):
            return
        assert user is not None
        signed, accepted = signed_text(request), None
        if signed is not None and request.code == _CODE and is_read_as(text, request, header):
            of, nothing = GroupTopic(header.consumer_group, header.topic), GappedText(b"", ())
            accepted = AcceptedPulls(of, False, _QUEUES, 1, 1, 1, None, nothing, request, signed)
        if not self._tables.has_room(accepted) or len(header.topic) > 60:
            self._tables.clear()
            return
        number = self._tables.add(accepted)
        self._kernel.enter(size, number)
        place = self._users.place(self._numbers[request.fields[ACCESS_KEY]])
        assert place is not None
        self._tables.permissions.permit(number, place)


@functools.lru_cache(1)
def _kernel(gate: Gate) -> PullGate:
    return PullGate(gate)


def signed_pulls(gate: Gate, chance: random.Random) -> str:
    """Sign a pull, and perhaps change it, or write it in another way."""
    if not is_compiled():
        return ""
    kernel, user = _kernel(gate), chance.choice((ROOT, POOR, *EVERYBODY))
    pairs, version = drawn(chance, user), chance.choice((513, 513, 399, 400, 0))
    is_json = chance.random() < 0.5
    kernel.learn(_written(chance, pairs, version, is_json=is_json))
    for _ in range(chance.choice((0, 1, 1, 2))):
        pairs = _changed(chance, pairs)
    body = chance.choice((b"", b"", b"", b"x"))
    data = _written(chance, pairs, version, is_json=is_json, body=body)
    if chance.random() < 0.3:
        data = mutated(data, chance, _ODD)
    if len(data) >= 1 << 15:
        return ""
    if chance.random() < 0.3:
        kernel.learn(data)
    return judged(gate, chance, user, data)


def judged(gate: Gate, chance: random.Random, user: Credentials, data: bytes) -> str:
    """Return what is wrong with how the kernel judges a frame."""
    named = user if chance.random() < 0.9 else chance.choice(EVERYBODY)
    if named is GONE or not _kernel(gate).accepts(data, named.access_key):
        return ""
    try:
        command = next(FrameReader(Limits()).feed(data))
        assert isinstance(command, Command)
        found = Authentication(gate.accounts, ()).user(command, PEER)
    except (RemotingError, FormatError, StopIteration) as error:
        return f"signed pull: the kernel accepts what is refused: {error}: {data.hex()}"
    other = is_signed(dict(command.fields), bytes(command.body), command.version)
    if found is None or found.username != named.access_key or other is not named:
        return f"signed pull: the kernel accepts another user than {named}: {data.hex()}"
    return ""


def honest(gate: Gate, chance: random.Random) -> str:
    """Return what is wrong with how the kernel judges a pull as clients sign it, once it knows one
    with other numbers.
    """
    user, is_json, kernel = chance.choice((ROOT, POOR)), chance.random() < 0.5, _kernel(gate)
    for numbers in ((3, 44, 555), (chance.randrange(_QUEUES), chance.randrange(10**17), 0)):
        fields = _USUAL | {name: str(each) for name, each in zip(_NUMBERS, numbers, strict=True)}
        pairs = sign(chance, fields, b"", user, 513, is_shuffled=False)
        write = json_header if is_json else binary_header
        data = frame(write(pairs, 513, code=_CODE), b"", int(not is_json))
        kernel.learn(data)
        if not kernel.accepts(data, user.access_key):
            return f"signed pull: the kernel refuses an honest one: {data.hex()}"
    return judged(gate, chance, user, data)


def drawn(chance: random.Random, user: Credentials) -> Pairs:
    """Return the fields of a pull that a user has signed."""
    fields = dict(_USUAL)
    for name in _NUMBERS:
        fields[name] = chance.choice(_DIGITS[:6])
    if chance.random() < 0.3:
        fields[chance.choice((*_USUAL, *_MORE))] = chance.choice(_VALUES)
    return sign(chance, fields, b"", user, 513)


def _changed(chance: random.Random, pairs: Pairs) -> Pairs:
    if chance.random() < 0.5:
        name, made = chance.choice(_NUMBERS), chance.choice(_DIGITS)
        return [(each, made if each == name else value) for each, value in pairs]
    return changed_fields(chance, pairs, b"")[0]


def _written(
    chance: random.Random, pairs: Pairs, version: int, *, is_json: bool, body: bytes = b""
) -> bytes:
    if is_json:
        header = json_header(pairs, version, chance=chance, code=_CODE)
    else:
        header = binary_header(pairs, version, code=_CODE)
    return frame(header, body, int(not is_json))
