"""Time searches, proved against looking at every message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader
from tests.store.make_store import START, StoreMaker

STEPS = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def make(steps: list[int], first_offset: int) -> tuple[StoreMaker, list[int]]:
    maker, times, time = StoreMaker(), [], START
    maker.next_offsets["T", 0] = first_offset
    for step in steps:
        time += step
        times.append(time)
        maker.append(time=time)
        maker.append(topic="Other", time=time)
    return maker, times


@given(steps=STEPS, first=st.integers(0, 25), lost=st.sets(st.integers(0, 9)), seed=st.integers())
def test_boundaries_equal_brute_force(
    steps: list[int], first: int, lost: set[int], seed: int
) -> None:
    """With ties, over several files, from any first offset, and with queue files lost."""
    maker, times = make(steps, first)
    files = maker.files(queue_file_size=100)
    for number, path in enumerate(sorted(p for p in files if p.startswith("consumequeue/T/"))):
        if number in lost and number:
            del files[path]
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.queue("T", 0) == (first, first + len(times))
        for asked in range(START - 1, times[-1] + 2):
            later = [first + n for n, time in enumerate(times) if time >= asked]
            earlier = [first + n for n, time in enumerate(times) if time <= asked]
            lower = later[0] if later else first + len(times)
            upper = earlier[-1] if earlier else first
            around = [n for n in (upper, lower) if first <= n < first + len(times)]
            nearest = min(around, key=lambda n: abs(times[n - first] - asked))
            assert reader.offset_by_time("T", 0, asked, "lower") == lower
            assert reader.offset_by_time("T", 0, asked, "upper") == upper
            assert reader.offset_by_time("T", 0, asked, "nearest") == (
                lower if asked in times else nearest
            )


@given(
    messages=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(["", "a", "b"])),
        min_size=1,
        max_size=50,
    ),
    begin=st.integers(-1, 60),
    length=st.integers(-1, 60),
    limit=st.integers(1, 60),
    tag=st.sampled_from([None, "a", "a || b"]),
)
def test_range_over_queues_equals_brute_force(
    messages: list[tuple[int, int, str]], begin: int, length: int, limit: int, tag: str | None
) -> None:
    maker, time = StoreMaker(), START
    for queue_id, step, tags in messages:
        time += step
        maker.append(queue_id=queue_id, time=time, **({"TAGS": tags} if tags else {}))
    wanted = None if tag is None else {one.strip() for one in tag.split("||")}
    expected = [
        message.physical_offset
        for message in maker.messages
        if START + begin <= message.time <= START + begin + length
        and (wanted is None or message.properties.get("TAGS") in wanted)
    ]
    with StoreReader.open(MemoryDirectory(maker.files())) as reader:
        found = reader.by_time_range("T", START + begin, START + begin + length, limit, tag)
    assert [record.physical_offset for record in found.records] == expected[:limit]
    assert found.truncated == (len(expected) > limit)
