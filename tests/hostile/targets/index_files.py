"""Index files: chains with loops, links and slots that point anywhere, headers that lie."""

from __future__ import annotations

import numpy as np

from mqlake.dispatch.derived.index_entries import IndexFileBuilder, lookup_many, relink
from mqlake.dispatch.kernel import Kernel, load
from mqlake.errors import FormatError
from mqlake.formats import index_file
from mqlake.formats.index_file import ENTRY_SIZE, HEADER_SIZE
from mqlake.formats.java_string import index_key_hash
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log.segments import CommitLog
from tests.hostile.cases import Case, Target, require, same
from tests.hostile.mutate import NUMBERS, change
from tests.hostile.seeds import index_fields

NAME = "20261120203016976"
BEGIN = 1_795_000_000_000


def mutated(case: Case) -> None:
    """Look keys up in mutated index files, and link them anew."""
    dice = case.dice
    for _ in range(10):
        slots = dice.choice((1, 2, 7, 16, 64))
        most = dice.choice((2, 8, 4 * slots + 1, 4 * slots, 200))
        entries = dice.choice((most - 1, dice.randrange(most)))
        data = bytearray(real_file(case, slots, most, entries))
        fields = index_fields(slots, entries)
        for _ in range(dice.choice((1, 2, 5))):
            case.tell(change(dice, data, fields, near=entries + 1))
        if dice.random() < 0.1:
            loop(case, data, slots, entries)
        case.feed(len(data))
        check(case, bytes(data), slots, most)
        case.story.clear()


def real_file(case: Case, slots: int, most: int, entries: int) -> bytes:
    """Return an index file as RocketMQ would write it."""
    dice = case.dice
    builder = IndexFileBuilder(slots, most, previous_end_timestamp=dice.choice((0, BEGIN)))
    hashes = [dice.choice((dice.getrandbits(31), dice.randrange(8))) for _ in range(entries)]
    builder.insert(
        np.array(hashes, np.int32),
        np.arange(entries, dtype=np.int64) * 300,
        BEGIN + np.arange(entries, dtype=np.int64) * dice.choice((1, 700, 10**12)),
    )
    with builder.finish() as view:
        data = bytes(view)
    builder.close()
    case.tell(f"{slots} slots, {entries} of {most} entries")
    return data


def loop(case: Case, data: bytearray, slots: int, entries: int) -> None:
    """Make every link lead to the entry behind it, the last one to the first."""
    case.tell("links in a circle")
    for entry in range(1, entries + 1):
        at = index_file.entry_at(slots, entry) + ENTRY_SIZE - 4
        data[at : at + 4] = (entry % entries + 1).to_bytes(4, "big")


def check(case: Case, data: bytes, slots: int, most: int) -> None:
    """Ask compiled kernels and twin the same; open the file as the store does."""
    hashes = np.array(_some_hashes(case, data), np.int32)
    begin, end = sorted(case.dice.choice((0, BEGIN, BEGIN + 5000, *_LONGS)) for _ in range(2))
    limit = case.dice.choice((1, 2, 64, 1 << 31))
    case.tell(f"look {hashes.tolist()} up in [{begin}, {end}], at most {limit}")
    found: list[list[list[int]]] = []
    for name in ("compiled", "reference"):
        columns = lookup_many(data, slots, most, hashes, begin, end, limit, load(name))
        found.append([column.tolist() for column in columns])
    same(*found, "the kernels' look-ups")
    require(len(found[0][0]) <= len(hashes) * len(data) // ENTRY_SIZE + 1, "a chain without end")
    case.seen["matches"] += len(found[0][0])
    for key_hash in {*hashes.tolist()}:
        chain = list(index_file.walk_slot(data, slots, most, key_hash))
        require(len(chain) <= len(data) // ENTRY_SIZE, "a chain without end")
    count = case.dice.choice((most, len(data), 1 << 31, 1, -5))
    links = [_relinked(data, slots, count, load(name)) for name in ("compiled", "reference")]
    same(*links, "links made anew")
    files = IndexFiles.open(MemoryDirectory({f"index/{NAME}": data}))
    case.seen["refused"] += len(files.damage)
    for file in files.files:
        case.seen["opened"] += 1
        list(file.slot(index_key_hash("Topic#key")))
        require(len([*files.gaps(_NO_LOG, 0, 1 << 40)]) <= 2, "one file leaves two gaps at most")
    files.after_crash(0, 500)


_NO_LOG = CommitLog(MemoryDirectory({}), ())
_LONGS = tuple(number - (number >> 63 << 64) for number in NUMBERS)


def _some_hashes(case: Case, data: bytes) -> list[int]:
    """Return hashes that the file may hold, and some that it does not."""
    hashes = [case.dice.randrange(8) for _ in range(case.dice.randrange(1, 30))]
    places = range(len(data) % ENTRY_SIZE + HEADER_SIZE, len(data) - 4, ENTRY_SIZE)[:30]
    hashes += [int.from_bytes(data[at : at + 4], "big") & 0x7FFFFFFF for at in places]
    return hashes


def _relinked(data: bytes, slots: int, count: int, kernel: Kernel) -> object:
    try:
        return relink(data, slots, count, kernel)
    except FormatError:
        return None


TARGETS = (
    Target(
        "index",
        "Lookups (`walk_slot`, `lookup_many`), `relink` and opening of mutated index files: the "
        "compiled kernels and their twin agree, and every chain ends.",
        mutated,
        0.08,
    ),
    Target(
        "index-bounds-checked",
        "The same with kernels that check each load and store.",
        mutated,
        0.01,
        bounds_checked=True,
    ),
)
