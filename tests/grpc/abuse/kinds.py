"""The kinds of abuse. Each returns what a client sends after the preface."""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlake.grpc.http2 import frames
from tests.grpc.abuse.conversations import Piece, conversation
from tests.mutated_bytes import mutated

_ODD = (0, 1, 0x3F, 0x7F, 0x80, 0xFF)


def joined(pieces: list[Piece]) -> bytes:
    """Return the bytes of frames."""
    return b"".join(piece.encoded for piece in pieces)


def changed_bytes(chance: random.Random) -> bytes:
    """Change any bytes, in frames and between them."""
    return mutated(joined(conversation(chance)), chance, _ODD)


def changed_frames(chance: random.Random) -> bytes:
    """Remove, repeat and exchange frames; change their types, flags and streams."""
    pieces = conversation(chance)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(pieces))
        piece = pieces[at]
        match chance.randrange(6):
            case 0:
                pieces.insert(at, pieces[chance.randrange(len(pieces))])
            case 1 if len(pieces) > 1:
                del pieces[at]
            case 2:
                pieces[at] = piece._replace(kind=chance.randrange(12))
            case 3:
                pieces[at] = piece._replace(flags=piece.flags ^ 1 << chance.randrange(8))
            case 4:
                streams = (0, 1, 2, 3, 5, piece.stream + 2, 2**31 - 1)
                pieces[at] = piece._replace(stream=chance.choice(streams))
            case _:
                chance.shuffle(pieces)
    return joined(pieces)


def _changed_payloads(kinds: tuple[int, ...], chance: random.Random) -> bytes:
    pieces = conversation(chance)
    places = [at for at, piece in enumerate(pieces) if piece.kind in kinds]
    for at in chance.sample(places, min(len(places), 3)):
        pieces[at] = pieces[at]._replace(payload=mutated(pieces[at].payload, chance, _ODD))
    return joined(pieces)


def changed_headers(chance: random.Random) -> bytes:
    """Change blocks of headers; the frames around them are right."""
    return _changed_payloads((frames.HEADERS, frames.CONTINUATION), chance)


def changed_messages(chance: random.Random) -> bytes:
    """Change requests and their prefixes; the frames around them are right."""
    return _changed_payloads((frames.DATA,), chance)


def changed_windows(chance: random.Random) -> bytes:
    """Change settings, windows and resets."""
    kinds = (frames.SETTINGS, frames.WINDOW_UPDATE, frames.RST_STREAM, frames.PING)
    return _changed_payloads(kinds, chance)


def any_frames(chance: random.Random) -> bytes:
    """Make frames up."""
    pieces = conversation(chance)[: chance.randrange(1, 6)]
    for _ in range(chance.randrange(1, 20)):
        payload = chance.randbytes(chance.choice((0, 1, 4, 5, 6, 8, 9, 30)))
        piece = Piece(chance.randrange(11), chance.randrange(256), chance.randrange(8), payload)
        pieces.insert(chance.randrange(1, len(pieces) + 1), piece)
    return joined(pieces)


def honest(chance: random.Random) -> bytes:
    """Change nothing: the client leaves at any moment."""
    return joined(conversation(chance))


KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "bytes": changed_bytes,
    "frames": changed_frames,
    "headers": changed_headers,
    "messages": changed_messages,
    "windows": changed_windows,
    "made-up frames": any_frames,
    "aborted": honest,
}
"""Each kind has the same share."""
