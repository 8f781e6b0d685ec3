from __future__ import annotations

import pytest

from mqlake.formats.kafka.file_name import (
    DirectoryState,
    Kind,
    PartitionName,
    State,
    file_name,
    is_topic,
    parse_file_name,
    parse_partition_name,
    partition_name,
)
from tests import golden_kafka


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("state", State)
def test_files_both_ways(kind: Kind, state: State) -> None:
    name = file_name(1 << 40, kind, state)
    assert f"00000001099511627776{kind}{state}" == name
    assert (1 << 40, kind, state) == parse_file_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "1.log",
        "00000000000000000000",
        "00000000000000000000.txt",
        "00000000000000000000.log.old",
        "00000000000000000000.log.swap.deleted",
        "99999999999999999999.log",
        "0000000000000000000a.log",
        "\u0660" * 20 + ".log",
        "00000000000000000000.log\n",
        "leader-epoch-checkpoint",
    ],
)
def test_no_segment_file(name: str) -> None:
    assert parse_file_name(name) is None


def test_every_golden_name() -> None:
    named = {
        path.name
        for path in golden_kafka.log_directory().glob("*/*")
        if parse_file_name(path.name) is None
    }
    assert {"leader-epoch-checkpoint", "partition.metadata"} <= named
    # KRaft's own files in its metadata log.
    assert all(
        name.startswith(("leader-epoch", "partition.", "quorum-state"))
        or name.endswith(".checkpoint")
        for name in named
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-0", PartitionName("a", 0, DirectoryState.LIVE)),
        ("a-b.c_D-12", PartitionName("a-b.c_D", 12, DirectoryState.LIVE)),
        ("a-1-2", PartitionName("a-1", 2, DirectoryState.LIVE)),
        ("a-0.0123456789abcdef-delete", PartitionName("a", 0, DirectoryState.DELETED)),
        ("a-7.ff-future", PartitionName("a", 7, DirectoryState.FUTURE)),
        ("a-7.ff-stray", PartitionName("a", 7, DirectoryState.STRAY)),
    ],
)
def test_partition_names(name: str, expected: PartitionName) -> None:
    assert expected == parse_partition_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "a", "a-", "-0", "a-x", "a b-0", "a/b-0", "..-0", ".-0", "a-4294967296", "a-0\n", "é-0"],
)
def test_no_partition_name(name: str) -> None:
    assert parse_partition_name(name) is None


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_golden_partition_names(name: str) -> None:
    parsed = parse_partition_name(name)
    assert parsed is not None
    assert name == partition_name(parsed.topic, parsed.partition)


def test_topics() -> None:
    assert is_topic("a" * 249)
    assert not is_topic("a" * 250)
    assert not is_topic("..")
