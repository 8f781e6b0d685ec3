"""`mqlake inspect` against what RocketMQ says of the golden stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.index_file import decode_header
from tests.cli.conftest import Mqlake
from tests.golden import CLEAN, TORN_VARIANTS, recovery, store

NAMES = ("rmq5-clean", "rmq533-clean", "rmq49-clean", "rmq5-default", "rmq5-killed")


@pytest.mark.parametrize("name", NAMES)
def test_log_topics_and_queues(mqlake: Mqlake, name: str) -> None:
    golden = store(name)
    ran = mqlake("inspect", golden.path, "--json")
    report, truth = ran.json, golden.queries()
    assert (ran.code, ran.err) == (0, "")
    log = report["commitLog"]
    assert log["minOffset"] == truth["commitLog"]["commitLogMinOffset"]
    assert (
        log["maxOffset"] == truth["commitLog"]["commitLogMaxOffset"] == golden.walk()["endOffset"]
    )
    assert log["damage"] == []
    files = [
        (path.name, path.stat().st_size) for path in sorted((golden.path / "commitlog").iterdir())
    ]
    assert [(file["name"], file["bytes"]) for file in log["files"]] == files
    queues = {
        (topic["topic"], queue["queueId"]): (queue["minOffset"], queue["maxOffset"])
        for topic in report["topics"]
        for queue in topic["queues"]
    }
    assert queues == {
        (queue["topic"], queue["queueId"]): (queue["minOffset"], queue["maxOffset"])
        for queue in truth["queues"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_index_files_checkpoint_and_last_stop(mqlake: Mqlake, name: str) -> None:
    golden = store(name)
    report = mqlake("inspect", golden.path, "--json").json
    assert report["lastStopWasClean"] == (name in CLEAN)
    assert report["dialect"] == {"rmq533-clean": "5.3", "rmq49-clean": "4.9"}.get(name, "5.5")
    headers = [
        (path.name, *decode_header(path.read_bytes()[:40]))
        for path in sorted((golden.path / "index").iterdir())
    ]
    shown = [
        (
            *(file["name"], file["beginTimestamp"], file["endTimestamp"]),
            *(file["beginPhysicalOffset"], file["endPhysicalOffset"]),
            *(file["slotCount"], file["indexCount"]),
        )
        for file in report["index"]
    ]
    assert shown == headers
    checkpoint = (golden.path / "checkpoint").read_bytes()
    assert report["checkpoint"]["physicMsgTimestamp"] == int.from_bytes(checkpoint[:8], "big")


@pytest.mark.parametrize("name", TORN_VARIANTS)
def test_torn_logs_end_where_rocketmq_ends_them(mqlake: Mqlake, name: str) -> None:
    report = mqlake("inspect", store(name).path, "--json").json
    log = report["commitLog"]
    assert log["maxOffset"] == recovery(name)["afterLoad"]["commitLogMaxOffset"]
    (damage, *_) = log["damage"]
    segment = int(Path(damage["file"]).name)
    assert segment + damage["offset"] == log["maxOffset"]
    assert set(damage) == {"file", "offset", "bytes", "reason"}
    assert log["endReason"] == damage["reason"]
    beyond = log["beyondEnd"]["records"]
    whole = store("rmq5-killed").messages()
    assert beyond == sum(message["physicalOffset"] > log["maxOffset"] for message in whole)
    said = mqlake("inspect", store(name).path).out
    assert damage["reason"] in said
    assert "the abort file exists" in said
    assert (f"{beyond} good records, which RocketMQ drops" in said) == (beyond > 0)


def test_text(mqlake: Mqlake) -> None:
    golden = store("rmq5-clean")
    ran = mqlake("inspect", golden.path)
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["last", "stop", "clean"] in lines
    assert ["TopicA", "4", "854"] in [line[:3] for line in lines]
    assert f"0 to {golden.walk()['endOffset']:,}" in ran.out
