"""One record at a time: `mqlake.formats.record`."""

from __future__ import annotations

from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.message_json import to_json
from mqlake.formats.record import Fault
from tests.hostile import seeds
from tests.hostile.cases import Case, Target, require
from tests.hostile.mutate import change

OFFSET = 1 << 20


def mutated(case: Case) -> None:
    """Check and decode mutated records, each for itself."""
    for _ in range(100):
        fields = case.dice.choice(seeds.real_fields())
        new = bytearray(seeds.well_formed(case, fields, OFFSET))
        for _ in range(case.dice.randrange(3)):
            case.tell(change(case.dice, new, seeds.record_fields(bytes(new))))
        case.feed(len(new))
        check(case, bytes(new))
        case.story.clear()


def cut(case: Case) -> None:
    """Check and decode a record cut off at every byte, with zeros or nothing behind the cut."""
    fields = case.dice.choice(seeds.real_fields())
    data = record.encode(**fields, physical_offset=OFFSET)
    for length in range(len(data)):
        case.story[:] = [f"{data[:8].hex()}… cut at {length}"]
        case.feed(len(data), inputs=2)
        fault = check(case, data[:length])
        require(fault in (Fault.SHORT, Fault.SIZE), f"a record cut at {length} is {fault.name}")
        check(case, data[:length].ljust(len(data), b"\0"))


def check(case: Case, data: bytes) -> Fault:
    """Judge and decode; the two must agree, and all that a good record says must be in it."""
    fault, layout = record.check(data, 0, len(data), OFFSET)
    case.seen[fault.name] += 1
    if layout is not None:
        require(layout.size <= len(data), "the layout reaches beyond the record")
        end = layout.properties_at + layout.properties_length
        require(end == layout.size, "the layout is not as long as the record")
    plain, _ = record.check(data, 0, len(data))
    try:
        found = record.decode(data)
    except FormatError:
        require(plain is not Fault.GOOD, "decode refuses what check calls good")
        return fault
    require(plain is Fault.GOOD, "decode takes what check refuses")
    require(is_safe_topic(found.topic.encode()), f"unsafe topic {found.topic!r}")
    require(len(found.body) < len(data), "a body larger than its record")
    to_json(found)
    return fault


TARGETS = (
    Target(
        "record",
        "`record.check` and `record.decode` on mutated records: they agree, the parts are inside "
        "the record, and the topic is safe as a path.",
        mutated,
        0.40,
    ),
    Target("record-cut", "The same on real records, cut off at every byte.", cut, 0.10),
)
