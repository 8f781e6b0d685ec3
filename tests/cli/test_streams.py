"""`mqlake produce`, `consume` and `tail`, as programs of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.testing import RunningBroker, broker

_PATIENCE = 60
"""Seconds."""


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


def start(running: RunningBroker, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mqlake", *words, "-n", running.name_server]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def run(running: RunningBroker, *words: str, given: bytes = b"") -> tuple[int, bytes, str]:
    """Return the exit code and what was written."""
    out, err = (process := start(running, *words)).communicate(given, timeout=_PATIENCE)
    return process.returncode, out, err.decode()


def test_lines_go_in_and_out(running: RunningBroker, tmp_path: Path) -> None:
    lines = b"".join(b"line %d\r\n" % number for number in range(999)) + b"no end of the line"
    code, out, err = run(running, "produce", "lines", "--json", "--tags", "t", given=lines)
    assert (code, err) == (0, "")
    assert json.loads(out) | {"seconds": 0} == {
        "topic": "lines",
        "acknowledged": 1000,
        "seconds": 0,
    }
    words = ("consume", "lines", "--group", "readers", "--from", "earliest", "--max", "600")
    code, first, err = run(running, *words)
    assert (code, err) == (0, "")
    code, rest, _ = run(running, *words[:-1], "400")
    assert code == 0
    assert sorted((first + rest).splitlines()) == sorted(lines.replace(b"\r", b"").splitlines())
    file = tmp_path / "more.txt"
    file.write_bytes(b"of a file\n")
    err = run(running, "produce", "lines", str(file), "--progress")[2]
    # If it took longer than a second, there are lines of progress before.
    assert err.splitlines()[-1].startswith("sent 1 in ")


def test_a_failure_says_how_many_lines_were_acknowledged(running: RunningBroker) -> None:
    text = b'{"body": "text"}\n' * 300 + b"{\n"
    code, out, err = run(running, "produce", "cut", "--ndjson", "--json", given=text)
    assert code == 2
    assert json.loads(out)["acknowledged"] == 256
    assert err.endswith("(lines acknowledged before this group of 45: 256)\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_file_that_is_not_sent_to_its_end_is_no_success(
    running: RunningBroker, tmp_path: Path, number: signal.Signals
) -> None:
    """A script would remove the file, and with it the lines that were not sent."""
    topic, file = f"stopped-{number}", tmp_path / "lines"
    file.write_bytes(b"line\n" * 1000)
    run(running, "produce", topic, given=b"line\n")
    watching = start(running, "tail", topic, "--from", "earliest")
    process = start(running, "produce", topic, str(file), "--rate", "1", "--json")
    assert watching.stdout is not None
    assert [watching.stdout.readline() for _ in range(2)] == [b"line\n"] * 2
    process.send_signal(number)
    out, _ = process.communicate(timeout=_PATIENCE)
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=_PATIENCE)
    assert process.returncode == 130
    assert 0 < json.loads(out)["acknowledged"] < 1000


def test_json_lines_are_produced_and_consumed_unchanged(running: RunningBroker) -> None:
    given = [
        {"body": "text", "tags": "red", "keys": ["a", "b"], "properties": {"colour": "röt"}},
        {"body": "first", "priority": 3},
        {"bodyBase64": "/wA=", "shardingKey": "one"},
    ]
    text = b"\n".join(json.dumps(each).encode() for each in given)
    assert run(running, "produce", "first", "--ndjson", given=text)[0] == 0
    code, out, _ = run(running, "consume", "first", "--from", "earliest", "--max", "3", "--json")
    assert code == 0
    assert run(running, "produce", "second", "--ndjson", given=out)[0] == 0
    words = ("consume", "second", "--group", "g", "--from", "earliest", "--max", "3", "--json")
    code, again, _ = run(running, *words)
    assert code == 0
    found = {each.get("body"): each for each in map(json.loads, again.splitlines())}
    assert (found["text"]["tags"], found["text"]["keys"]) == ("red", ["a", "b"])
    assert found["text"]["properties"]["colour"] == "röt"
    assert (found[None]["bodyBase64"], found[None]["shardingKey"]) == ("/wA=", "one")
    assert (found["first"]["priority"], found["first"]["queueId"]) == (3, 3)
    assert found["text"]["priority"] is None


def test_a_tail_shows_what_arrives_until_it_is_interrupted(running: RunningBroker) -> None:
    run(running, "produce", "watched", given=b"before\n")
    process = start(running, "tail", "watched", "--from", "earliest", "--tags", "*")
    assert process.stdout is not None
    assert process.stdout.readline() == b"before\n"
    run(running, "produce", "watched", given=b"while it looks\n")
    assert process.stdout.readline() == b"while it looks\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=_PATIENCE)
    assert (process.returncode, err) == (0, b"")


def test_an_interrupted_consumer_commits(running: RunningBroker) -> None:
    run(running, "produce", "half", given=b"one\ntwo\n")
    words = ("consume", "half", "--group", "interrupted", "--from", "earliest")
    process = start(running, *words)
    assert process.stdout is not None
    assert {process.stdout.readline() for _ in range(2)} == {b"one\n", b"two\n"}
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=_PATIENCE)
    run(running, "produce", "half", given=b"three\n")
    assert run(running, *words, "--max", "1")[1] == b"three\n"


@pytest.mark.parametrize("command", ["tail", "consume"])
def test_a_mistyped_topic_names_the_nearest(running: RunningBroker, command: str) -> None:
    assert run(running, "produce", "Payments", given=b"one\n")[0] == 0
    code, out, err = run(running, command, "Paymnets")
    known = f"no name server of {running.name_server} knows the topic; the nearest is Payments"
    assert (code, out, err) == (2, b"", f"mqlake: topic Paymnets: {known}\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("tail", "unknown"), "topic unknown: no name server of "),
        (("tail", "unknown", "--from", "noon"), "--from needs earliest, latest or milliseconds"),
        (("consume", "unknown", "--group", "a b"), "The specified group: a b, contains illegal"),
        (("consume", "t", "--tags", "a", "--sql", "b"), "--tags and --sql cannot be combined"),
        (("produce", "t", "--ndjson"), "not a message: "),
        (("produce", "a b"), "The specified topic"),
    ],
)
def test_errors_are_one_line(words: tuple[str, ...], reason: str, running: RunningBroker) -> None:
    code, out, err = run(running, *words, given=b"{\n")
    assert (code, out) == (2, b"")
    assert err.count("\n") == 1
    assert reason in err
