"""The small files: configuration, checkpoint, abort file, and other formats that are only read."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mqlake.errors import FormatError
from mqlake.formats import (
    abort_file,
    batch_consume_queue,
    checkpoint,
    config,
    consume_queue,
    consume_queue_ext,
    fastjson,
    host,
    java_string,
    message_id,
    properties,
)
from mqlake.formats.file_name import check_topic_name, parse_index_name, parse_segment_name
from tests.formats.java_answers import content
from tests.golden import store
from tests.hostile.cases import Case, Target, require, same
from tests.hostile.mutate import NAMES, Field, change

PIECES = (
    b"[" * 300, b"{1:" * 150, b"9" * 500, b"-", b"1e999", b"\\u12", b"\\ud800", b'"', b"'", b",,",
    b"null", b"{}", b"[]", b"\xff", b"2147483648", b"9223372036854775808", b"@type", b"\0", b":",
)  # fmt: skip


def mutated(case: Case) -> None:
    """Read mutated small files."""
    for _ in range(20):
        name, data = case.dice.choice(files())
        new = bytearray(data)
        fields = [Field(f"number {at}", at, 8) for at in range(0, min(48, len(new) - 7), 8)]
        for _ in range(case.dice.choice((1, 2, 4))):
            if name.startswith("config/") and case.dice.random() < 0.5:
                at = case.dice.randrange(len(new) + 1)
                new[at:at] = piece = case.dice.choice(PIECES)
                case.tell(f"insert {piece[:10]!r} at {at}")
            else:
                case.tell(change(case.dice, new, fields))
        case.feed(len(new))
        check(case, name, bytes(new))
        case.story.clear()


@functools.cache
def files() -> tuple[tuple[str, bytes], ...]:
    """Return real small files by name."""
    path = store("rmq5-clean").path
    found = [
        (f"config/{name}", (path / "config" / name).read_bytes()[:4000])
        for name in config.KINDS
        if (path / "config" / name).exists()
    ]
    found.append(("checkpoint", (path / "checkpoint").read_bytes()))
    found += [(name, content(f"{name}.bin")) for name in ("consume_queue_ext",)]
    found.append(("batch_consume_queue", content("batch_consume_queue.bin")[:400]))
    found.append(("text", b"7F00000100002A9F0000000000000000"))
    return tuple(found)


def check(case: Case, name: str, data: bytes) -> None:
    """Read as what it is, and as everything that it might be taken for."""
    case.seen["read" if _reads(_READERS.get(name, abort_file.decode), data) else "refused"] += 1
    for reader in (*_READERS.values(), *_ANYTHING):
        if reader is not config.decode:
            _reads(reader, data)
    with_names(case, data)


def with_names(case: Case, data: bytes) -> None:
    """Check names as they may come from a directory, a record or a user."""
    for raw in (case.dice.choice(NAMES), data[:20]):
        name = raw.decode("utf-8", "surrogateescape")
        try:
            checked = check_topic_name(name)
        except FormatError:
            continue
        require(
            checked not in ("", ".", "..") and not {*checked} & {*"/\\\0"},
            f"{checked!r} was taken as a topic",
        )
        require(len(checked.encode()) <= 255, "a name of more than 255 bytes was taken")
    for parse in (parse_segment_name, parse_index_name):
        parsed = parse(data[:20].decode("latin-1"))
        require(parsed is None or parsed < 1 << 63, "a number that fits no field")


def _reads(read: Callable[[bytes], object], data: bytes) -> bool:
    try:
        read(data)
    except FormatError:
        return False
    return True


def _json(data: bytes) -> None:
    """Read JSON; what was read can be written, and read again."""
    value = fastjson.loads(data)
    text = fastjson.dumps(value)
    same(fastjson.dumps(fastjson.loads(text.encode())), text, "text of the value read again")


def _config(kind: type[config.Config]) -> Callable[[bytes], object]:
    return lambda data: config.decode(data, kind)


_READERS: dict[str, Callable[[bytes], object]] = {
    "checkpoint": checkpoint.decode,
    "consume_queue_ext": lambda data: list(consume_queue_ext.walk(data)),
    "batch_consume_queue": batch_consume_queue.decode,
    **{f"config/{name}": _config(kind) for name, kind in config.KINDS.items()},
}
_ANYTHING: tuple[Callable[[bytes], object], ...] = (
    _json,
    abort_file.decode,
    consume_queue.decode,
    host.decode_host,
    java_string.decode,
    properties.decode_properties,
    lambda data: message_id.decode_message_id(data.decode("latin-1")),
    lambda data: message_id.UniqueKey.parse(data.decode("latin-1")),
)

TARGETS = (
    Target(
        "documents",
        "Mutated `config/*.json`, checkpoints, ConsumeQueueExt and batch units, ids and names, "
        "each read as its own format and as all others: a value or a `FormatError`; no unsafe "
        "name is accepted as a topic.",
        mutated,
        0.08,
    ),
)
