"""Signed sends, honest and forged: the lane's kernel accepts none that the checks refuse."""

from __future__ import annotations

import functools
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mqlake.auth.authentication import Authentication
from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import FormatError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, Credentials, signature
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.auth.forgeries.gate import EVERYBODY, GONE, POOR, ROOT, Gate, is_signed
from tests.broker.send.random_sends import KEY, USUAL, USUAL_IN_BATCHES, random_fields
from tests.mutated_bytes import mutated
from tests.protocol.messages import frame, pair

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

PEER = "10.0.0.1:5000"
_ODD = (0, 1, 0x22, 0x2C, 0x5C, 0x7F, 0xFF)
_NAMES = "abcdefghijklmn"
_VALUES = ("", "x", "größer", "\U0001f600", "true", "0", "4", "-1", "a\x01b\x02", "=", "root", "\\")

Pairs = list[tuple[str, str | None]]


class Kernel:
    """The lane's kernel with the users of a gate.

    Attributes:
        numbers: those of users, by their names.
    """

    def __init__(self, gate: Gate) -> None:
        from mqlake.broker.lane.compiled.send_header import FIELDS
        from mqlake.broker.lane.layout import STATES
        from mqlake.broker.lane.topics import LaneTopics
        from mqlake.broker.lane.user_table import UserTable
        from mqlake.dispatch.compiled.put_sent import NUMBERS

        table = UserTable()
        self._users = table.arrays(LaneTopics().permissions)
        self.numbers: dict[str, int] = {}
        for user in gate.accounts.state.users.values():
            # All of them: who is not enabled is not in the table of a broker.
            number = table.add(user.username, user.password)
            assert number is not None
            self.numbers[user.username] = number
        self._state: Longs = np.zeros(STATES, np.int64)
        self._starts, self._lengths = np.zeros(FIELDS, np.int64), np.zeros(FIELDS, np.int64)
        self._properties: Bytes = np.zeros(1 << 16, np.uint8)
        self._message = np.zeros(NUMBERS, np.int64)
        self._most = np.array((1 << 16, 1 << 16, 1 << 16, (1 << 15) - 1))

    def accepts(self, data: bytes, user: str) -> bool:
        """Return whether a frame is a typical send that a user has signed.

        Args:
            user: who has signed the last request of its connection.
        """
        from mqlake.broker.lane.compiled.send_frame import read_send
        from mqlake.broker.lane.compiled.signatures import RIGHT
        from mqlake.broker.lane.layout import SIGNER
        from tests.auth.forgeries import lane_kernel

        received, own = np.frombuffer(data, np.uint8), np.frombuffer(b"", np.uint8)
        fields, stored = (self._starts, self._lengths), self._properties
        found = read_send(received, 0, own, self._most, *fields, stored, self._message)
        if not found[0]:
            return False
        self._state[SIGNER] = self.numbers[user]
        arguments = received, *fields, stored, self._message, self._users
        return lane_kernel.checked(self._state, *arguments) == RIGHT


@functools.lru_cache(1)
def _kernel(gate: Gate) -> Kernel:
    return Kernel(gate)


def signed_sends(gate: Gate, chance: random.Random) -> str:
    """Sign a send, and perhaps change it, or write it in another way."""
    if not is_compiled():
        return ""
    user, data = drawn(chance)
    return judged(gate, chance, user, data)


def judged(gate: Gate, chance: random.Random, user: Credentials, data: bytes) -> str:
    """Return what is wrong with how the kernel judges a frame."""
    kernel = _kernel(gate)
    named = user if chance.random() < 0.9 else chance.choice(EVERYBODY)
    if named is GONE or not kernel.accepts(data, named.access_key):
        return ""
    try:
        command = next(FrameReader(Limits()).feed(data))
        assert isinstance(command, Command)
        found = Authentication(gate.accounts, ()).user(command, PEER)
    except (RemotingError, FormatError) as error:
        return f"signed send: the kernel accepts what is refused: {error}: {data.hex()}"
    other = is_signed(dict(command.fields), bytes(command.body), command.version)
    if found is None or found.username != named.access_key or other is not named:
        return f"signed send: the kernel accepts another user than {named}: {data.hex()}"
    return ""


def honest(gate: Gate, chance: random.Random) -> str:
    """Return what is wrong with how the kernel judges a typical send as clients sign it."""
    user, fields = chance.choice((ROOT, POOR)), _fields(chance)
    fields["a"], body = "group", _body(chance)
    pairs = sign(chance, fields, body, user, 513)
    is_json = chance.random() < 0.5
    header = (json_header if is_json else binary_header)(pairs, 513)
    data = frame(header, body, int(not is_json))
    if not _kernel(gate).accepts(data, user.access_key):
        return f"signed send: the kernel refuses an honest one: {data.hex()}"
    return judged(gate, chance, user, data)


def drawn(chance: random.Random) -> tuple[Credentials, bytes]:
    """Return a frame, and who has signed it before it was changed."""
    user, body = chance.choice((ROOT, POOR, *EVERYBODY)), _body(chance)
    version = chance.choice((513, 513, 399, 400, 0))
    fields = _fields(chance)
    if chance.random() < 0.3:
        fields[chance.choice(_NAMES)] = chance.choice(_VALUES)
    if chance.random() < 0.1:
        name = chance.choice((SECURITY_TOKEN, "_UNIQUE_KEY_QUERY", "o", "A", "AccessKe", "aa", ""))
        fields[name] = chance.choice(_VALUES)
    pairs = sign(chance, fields, body, user, version)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        pairs, body = changed_fields(chance, pairs, body)
    is_json = chance.random() < 0.5
    header = (
        json_header(pairs, version, chance=chance) if is_json else binary_header(pairs, version)
    )
    data = frame(header, body, int(not is_json))
    if chance.random() < 0.2:
        data = mutated(data, chance, _ODD)
    if chance.random() < 0.05:
        data = data[: chance.randrange(len(data) + 1)]
    return user, data


def unmutated(chance: random.Random, users: Sequence[Credentials], opaque: int) -> bytes:
    """Return a frame that is signed by one of these users and then perhaps changed, but no bytes of
    it as a whole.
    """
    body, fields = _body(chance), _fields(chance)
    pairs = sign(chance, fields, body, chance.choice(users), 513)
    if chance.random() < 0.7:
        pairs, body = changed_fields(chance, pairs, body)
    is_json = chance.random() < 0.5
    header = (json_header if is_json else binary_header)(pairs, 513, opaque)
    return frame(header, body, int(not is_json))


def _fields(chance: random.Random) -> dict[str, str]:
    fields = random_fields(chance, USUAL if chance.random() < 0.8 else USUAL_IN_BATCHES)
    if chance.random() < 0.2:
        fields["i"] = f"KEYS\x01{'k' * chance.randrange(300)}\x02{KEY}"
    return fields


def _body(chance: random.Random) -> bytes:
    body = chance.randbytes(chance.choice((1, 4, 20, 50, 64, 120, 128, 200, 1024, 5000)))
    return zlib.compress(body) if chance.random() < 0.3 else body


def sign(
    chance: random.Random,
    fields: dict[str, str],
    body: bytes,
    user: Credentials,
    version: int,
    *,
    is_shuffled: bool = True,
) -> Pairs:
    """Return the fields with a signature, in any order if that is wanted."""
    whole = {**fields, ACCESS_KEY: user.access_key}
    right = signature(whole, body, user.secret_key, version)
    pairs: Pairs = [*whole.items(), (SIGNATURE, right)]
    if is_shuffled and chance.random() < 0.5:
        chance.shuffle(pairs)
    return pairs


# Changes after the signature

Change = Callable[[random.Random, Pairs, bytes], tuple[Pairs, bytes]]


def _without(pairs: Pairs, name: str) -> Pairs:
    return [each for each in pairs if each[0] != name]


def _value(pairs: Pairs, name: str) -> str:
    return next((value or "" for each, value in pairs if each == name), "")


def _of_signature(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    right = _value(pairs, SIGNATURE)
    place = chance.randrange(max(len(right), 1))
    made = chance.choice(
        (
            *(
                right[:place],
                right[:-1],
                right[1:],
                right + "=",
                right + "A",
                "",
                right[:-2] + "==",
            ),
            *(right.swapcase(), right[:place] + chance.choice("AZaz09+/=") + right[place + 1 :]),
            # The last digit has two bits that Base64 does not use.
            right[:-2] + chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkl") + "=",
        )
    )
    return [*_without(pairs, SIGNATURE), (SIGNATURE, made)], body


def _of_user(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    names = (*(each.access_key for each in EVERYBODY), "", "roo", "rootx", "Root", "poor\0")
    return [(ACCESS_KEY, chance.choice(names)), *_without(pairs, ACCESS_KEY)], body


def _of_body(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    return pairs, chance.choice((mutated(body, chance, _ODD), body + b"x", body[1:], body * 2))


def _twice(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    """Repeat a field, with the same value or another one."""
    name, value = chance.choice(pairs)
    made = chance.choice((value, *_VALUES))
    place = chance.randrange(len(pairs) + 1)
    return [*pairs[:place], (name, made), *pairs[place:]], body


def _moved(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    """Move bytes from one value to the next one, which leaves the signed text as it was."""
    names = sorted(name for name, _ in pairs if name != SIGNATURE)
    place = chance.randrange(len(names))
    first = names[place]
    text = _value(pairs, first)
    cut = chance.randrange(len(text) + 1)
    if place + 1 == len(names):
        moved = text[cut:].encode("utf-8", "replace")
        return [*_without(pairs, first), (first, text[:cut])], moved + body
    second = names[place + 1]
    later = text[cut:] + _value(pairs, second)
    rest = _without(_without(pairs, first), second)
    return [*rest, (first, text[:cut]), (second, later)], body


def _renamed(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    name = chance.choice(pairs)[0]
    other = chance.choice((*_NAMES, "o", SECURITY_TOKEN, ACCESS_KEY, SIGNATURE, "signature"))
    return [(other if each == name else each, value) for each, value in pairs], body


def _of_value(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    name = chance.choice(pairs)[0]
    made = chance.choice((None, *_VALUES))
    return [(each, made if each == name else value) for each, value in pairs], body


def _fewer(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    return _without(pairs, chance.choice((chance.choice(pairs)[0], SIGNATURE, ACCESS_KEY))), body


def _more(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    name = chance.choice((SECURITY_TOKEN, "_UNIQUE_KEY_QUERY", "k", "l", "n", "zz", "\0", "é"))
    return [*pairs, (name, chance.choice(_VALUES))], body


_CHANGES: tuple[Change, ...] = (
    *(_of_signature, _of_signature, _of_user, _of_body, _twice, _moved, _moved, _renamed),
    *(_of_value, _fewer, _more),
)


def changed_fields(chance: random.Random, pairs: Pairs, body: bytes) -> tuple[Pairs, bytes]:
    """Change the fields of a signed request, or its body, once."""
    return chance.choice(_CHANGES)(chance, pairs, body)


# Headers


def _code(pairs: Pairs) -> int:
    is_batch = _value(pairs, "m") == "true"
    return int(RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2)


def binary_header(pairs: Pairs, version: int, opaque: int = 7, *, code: int = 0) -> bytes:
    """Return a binary header. What has no value is left out, as Java does.

    Args:
        code: without it, that of sends.
    """
    texts = b"".join(
        pair(name.encode("utf-8", "replace"), value.encode("utf-8", "replace"))
        for name, value in pairs
        if value is not None
    )
    start = struct.pack(">hBhiiii", code or _code(pairs), 0, version, opaque, 0, 0, len(texts))
    return start + texts


def json_header(
    pairs: Pairs,
    version: int,
    opaque: int = 7,
    *,
    chance: random.Random | None = None,
    code: int = 0,
) -> bytes:
    """Return a header in JSON, now and then written as no client writes it if there is a chance.

    Args:
        code: without it, that of sends.
    """
    text = ",".join(f"{_text(chance, name)}:{_text(chance, value)}" for name, value in pairs)
    members = [
        f'"code":{code or _code(pairs)}', f'"extFields":{{{text}}}', '"flag":0',
        '"language":"JAVA"', f'"opaque":{opaque}', '"serializeTypeCurrentRPC":"JSON"',
        f'"version":{version}',
    ]  # fmt: skip
    if chance is not None and chance.random() < 0.1:
        chance.shuffle(members)
    if chance is not None and chance.random() < 0.05:
        members.append(chance.choice(members))
    separator = ", " if chance is not None and chance.random() < 0.05 else ","
    return ("{" + separator.join(members) + "}").encode("utf-8", "replace")


def _text(chance: random.Random | None, value: str | None) -> str:
    if value is None or chance is None or chance.random() < 0.95:
        return json.dumps(value, ensure_ascii=chance is None or chance.random() < 0.5)
    escaped = "".join(
        f"\\u{ord(each):04x}" if ord(each) < 1 << 16 and chance.random() < 0.2 else each
        for each in json.dumps(value)[1:-1].replace("\\", "")
    )
    return '"' + escaped.replace("/", "\\/") + '"'
