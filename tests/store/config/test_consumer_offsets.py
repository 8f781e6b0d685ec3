"""Which groups have offsets for which topics, and what a write keeps of the file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import cast

import pytest

from mqlake.formats import fastjson
from mqlake.formats.config import ConsumerOffsets
from mqlake.storage.clock import SystemClock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.config.config_file import ConfigFile
from mqlake.store.config.consumer_offsets import LARGEST_OFFSET, ConsumerOffsetTable


def load(path: Path) -> ConsumerOffsetTable:
    directory = LocalOwnedDirectory(path)
    file = ConfigFile[ConsumerOffsets].load(directory, ConsumerOffsets, SystemClock())
    return ConsumerOffsetTable(file)


def write(table: ConsumerOffsetTable) -> None:
    job = table.write()
    assert job is not None
    job.complete()


def test_groups_and_topics_lead_to_each_other(tmp_path: Path) -> None:
    dice, table, pairs = random.Random(1), load(tmp_path), set[tuple[str, str]]()
    for _ in range(1500):
        group, topic = f"g{dice.randrange(9)}", f"t{dice.randrange(5)}"
        if dice.randrange(5) < 3:
            table.commit(group, topic, dice.randrange(2), 7)
            pairs.add((group, topic))
        else:
            table.remove(group, topic)
            pairs.discard((group, topic))
        assert table.topics_of(group) == {each for of, each in pairs if of == group}
        assert table.groups_of(topic) == {each for each, of in pairs if of == topic}
        assert table.has_any(group) == any(of == group for of, _ in pairs)


def test_a_write_keeps_members_that_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "config" / "consumerOffset.json"
    path.parent.mkdir()
    offsets = {"t@g": {"0": 3}}
    path.write_text(json.dumps({"offsetTable": offsets, "futureMember": [1], "groupTopicMap": {}}))
    table = load(tmp_path)
    table.commit("g", "t", 1, 4)
    write(table)
    found = cast("dict[str, object]", fastjson.loads(path.read_bytes()))
    assert found["futureMember"] == [1]
    assert found["offsetTable"] == {"t@g": {0: 3, 1: 4}}
    assert found["groupTopicMap"] == {"g": ["t"]}
    assert load(tmp_path).query("g", "t", 0) == 3


@pytest.mark.parametrize("offset", [-2, -(2**63), LARGEST_OFFSET + 1, 2**63, 10**30])
def test_what_is_no_queue_offset_is_not_stored(tmp_path: Path, offset: int) -> None:
    """A slave would refuse the whole table."""
    table = load(tmp_path)
    table.commit("g", "t", 0, 7)
    table.commit_pull("g", "t", 0, 8)
    table.commit("g", "t", 0, offset)
    table.commit_pull("g", "t", 0, offset)
    assert (table.query("g", "t", 0), table.query_pull("g", "t", 0)) == (7, 8)
    table.reset("g", "t", 0, offset)
    assert table.query("g", "t", 0) == (-1 if offset < 0 else LARGEST_OFFSET)
