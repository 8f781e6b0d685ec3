"""Segments: the compiled scan, its twin, and the plain scan must say the same."""

from __future__ import annotations

from typing import Any

from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.reference import scan_records
from mqlake.dispatch.scan import Want
from mqlake.formats import record
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.storage.memory import MemoryFile
from tests.dispatch.logs import Seen, scan
from tests.hostile import seeds
from tests.hostile.cases import Case, Target, require, same

BASES = (0, 0, 1 << 20, (1 << 40) + 123, (1 << 63) - (1 << 20))
WINDOWS = (91, 128, 333, 1 << 12, 1 << 16)


def mutated(case: Case) -> None:
    """Scan segments of mutated records in all ways."""
    for _ in range(4):
        base = case.dice.choice(BASES)
        check(case, seeds.segment(case, case.dice.randrange(1, 12), base), base)
        case.story.clear()


def cut(case: Case) -> None:
    """Scan a short segment cut off at every byte."""
    data = b""
    for fields in case.dice.choices(seeds.real_fields(), k=2):
        data += record.encode(**fields, physical_offset=len(data))
    for length in range(case.dice.randrange(4), len(data), 4):
        case.story[:] = [f"cut at {length} of {len(data)}"]
        case.feed(length)
        compiled = scan(data[:length], load("compiled"))
        same(compiled, scan(data[:length], load("reference")), "the kernels' answers")
        covered(compiled, data[:length], 0)


def check(case: Case, data: bytes, base: int) -> None:
    """Scan a segment as a whole, in parts, and from anywhere."""
    compiled, twin = load("compiled"), load("reference")
    whole = scan(data, compiled, base=base, window=1 << 16)
    for row in whole.records:
        case.seen[Fault(row["fault"]).name] += 1
    case.seen.update(gap.fault.name for gap in whole.gaps if gap.fault is not Fault.CRC)
    covered(whole, data, base)
    options = _options(case, len(data), base)
    case.tell(f"scan with {options}")
    found = scan(data, compiled, **options)
    same(found, scan(data, twin, **options), "the kernels' answers")
    covered(found, data, base)
    _compare_with_plain(data, found, options)
    _compare_with_parts(case, data, base, whole, compiled)


def _options(case: Case, size: int, base: int) -> dict[str, Any]:
    dice = case.dice
    start, end = sorted((dice.randrange(size + 1), dice.randrange(size + 1)))
    if dice.random() < 0.4:
        start = 0
    if dice.random() < 0.4:
        end = size
    return {
        "base": base,
        "start": base + start,
        "end": base + end,
        "exact": dice.random() < 0.5,
        "crc": dice.random() < 0.8,
        "want": dice.choice((Want.DISPATCH, Want.DISPATCH, Want.EXPORT, Want.LOCATE)),
        "dialect": dice.choice(tuple(Dialect)),
        "limit": dice.choice((None, None, base + dice.randrange(end, size + 1))),
        "window": dice.choice(WINDOWS),
    }


def covered(seen: Seen, data: bytes, base: int) -> None:
    """Require that records and gaps lie side by side from start to stop, but for a last blank."""
    stretches = [(row["physical_offset"], row["size"]) for row in seen.records]
    stretches += [gap[:2] for gap in seen.gaps if gap.fault is not Fault.CRC]
    at = seen.start
    for offset, size in sorted(stretches):
        require(offset == at and size > 0, f"{offset} follows {at}")
        at += size
    if at != seen.stop:
        fault, _ = record.check(data, at - base, len(data))
        require(fault is Fault.BLANK, f"nothing accounts for [{at}, {seen.stop})")
        same(seen.stop, base + len(data), "end of the blank record, end of the segment")


def _compare_with_plain(data: bytes, found: Seen, options: dict[str, Any]) -> None:
    names = ("base", "start", "end", "exact", "crc", "limit")
    gaps = []
    plain = scan_records(MemoryFile(data), gaps=gaps, **{name: options[name] for name in names})
    same(
        [(offset, layout.size, int(fault)) for offset, layout, fault in plain],
        [(row["physical_offset"], row["size"], row["fault"]) for row in found.records],
        "records of the plain and the compiled scan",
    )
    same(gaps, found.gaps, "gaps of the plain and the compiled scan")


def _compare_with_parts(case: Case, data: bytes, base: int, whole: Seen, kernel: Kernel) -> None:
    """Cut the segment in two: the second scan from where the first stopped makes up the whole."""
    middle = base + case.dice.randrange(len(data) + 1)
    case.tell(f"in two parts at {middle}")
    first = scan(data, kernel, base=base, end=middle)
    if first.gaps and first.gaps[-1].open:
        second = scan(data, kernel, base=base, start=middle, exact=False)
    else:
        second = scan(data, kernel, base=base, start=first.stop)
    same(first.offsets + second.offsets, whole.offsets, "records of the parts and of the whole")
    # Keys and queues too: the table's numbers are each scan's own.
    same(first.keys + second.keys, whole.keys, "keys of the parts and of the whole")


_SAYS = (
    "`SegmentScan` over segments of mutated records, cut and resynchronised at any position: the "
    "compiled kernels, their twin and the plain scan return the same records, gaps, queues and "
    "key hashes; two parts equal the whole; every byte is accounted for."
)

TARGETS = (
    Target("scan", _SAYS, mutated, 0.20),
    Target("scan-cut", "The same on short segments, cut off at every byte.", cut, 0.05),
    Target(
        "scan-bounds-checked",
        "The same with kernels that check each load and store.",
        mutated,
        0.06,
        bounds_checked=True,
    ),
)
