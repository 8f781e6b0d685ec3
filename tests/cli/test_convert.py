"""The command `mqlake convert`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlake.cli.app import run
from tests import golden_kafka
from tests.golden import store

LOCAL = ("--engine", "local", "--no-progress")
TO_KAFKA = ["convert", str(store("rmq49-clean").path), "--to", "kafka", "--no-progress"]


def test_converting_to_kafka_and_back_keeps_the_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(store("rmq5-clean").path)
    logs, back = str(tmp_path / "logs"), str(tmp_path / "store")
    topics = ("--topic", "TopicA", "--topic", "TopicBatch")
    assert run(["convert", source, "--to", "kafka", "--out", logs, *topics, *LOCAL, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {"source": source, "output": logs, "to": "kafka", "topics": 2}.items() <= made.items()
    assert made["leftOut"] == made["damage"] == []

    assert run(["kafka", "verify", logs]) == 0
    capsys.readouterr()
    assert run(["convert", logs, "--to", "rocketmq", "--out", back, *LOCAL]) == 0
    out = capsys.readouterr().out
    assert f"{made['records']:,}" in out
    assert run(["verify", back, *LOCAL]) == 0


def test_omitted_messages_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    for name in ("txn-0", "same-ts-0"):
        golden_kafka.GoldenPartition(name).copy(logs / name)
    golden_kafka.GoldenPartition("txn-0").copy(logs / "dotted.name-0")
    out = str(tmp_path / "store")
    assert run(["convert", str(logs), "--to", "rocketmq", "--out", out, *LOCAL]) == 0
    assert "dotted.name: RocketMQ allows at most" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["{logs}", "--to", "kafka", "--out", "{new}"],
            "this is a log directory of Kafka: use mqlake kafka",
        ),
        (["{store}", "--to", "rocketmq", "--out", "{new}"], "no partition in it"),
        (["{new}", "--to", "rocketmq", "--out", "{new}"], "the directory does not exist"),
        (["{store}", "--to", "kafka", "--out", "{store}"], "not empty (it contains"),
        (["{store}", "--to", "pulsar", "--out", "{new}"], "'pulsar' is not one of"),
        (
            ["{store}", "--to", "kafka", "--out", "{new}", "--topic", "no"],
            "topic 'no' does not exist",
        ),
    ],
)
def test_errors(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {
        "logs": golden_kafka.log_directory(),
        "store": store("rmq5-clean").path,
        "new": tmp_path / "new",
    }
    # Spark is not started for what cannot succeed, but for the topic.
    engine = LOCAL if "--topic" in arguments else ("--no-progress",)
    words = [word.format(**places) for word in arguments]
    assert run(["convert", *words, *engine]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert complaint in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def on_spark(tmp_path: Path) -> Path:
    """Logs that Spark has converted a store to."""
    from tests.spark.shared_session import shared_with_commands

    with shared_with_commands():
        assert run([*TO_KAFKA, "--out", str(tmp_path / "spark")]) == 0
    return tmp_path / "spark"


@pytest.mark.spark
def test_convert_runs_on_spark(on_spark: Path, tmp_path: Path) -> None:
    """The files are those that threads write."""
    from tests.spark.files import digests

    assert run([*TO_KAFKA, "--out", str(tmp_path / "local"), "--engine", "local"]) == 0
    assert digests(on_spark) == digests(tmp_path / "local")


@pytest.mark.spark
@pytest.mark.nightly  # tests/spark/test_jobs.py runs other jobs
def test_converting_back_runs_on_spark(on_spark: Path, tmp_path: Path) -> None:
    from tests.spark.shared_session import shared_with_commands

    back = ["convert", str(on_spark), "--to", "rocketmq", "--out", str(tmp_path / "store")]
    with shared_with_commands():
        assert run([*back, "--no-progress"]) == 0
    assert run(["verify", str(tmp_path / "store"), *LOCAL]) == 0
