"""`mqlake query --json` against what Java read of the golden stores, and what it says to people."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Mqlake, Ran
from tests.golden import GoldenStore, store

STORES = ("rmq5-clean", "rmq49-clean", "rmq5-killed")
SAMPLE = 6
EVERY = 3
"""One queue in so many has all of its messages printed; the nightly run prints all queues."""


@pytest.fixture(params=STORES)
def golden(request: pytest.FixtureRequest) -> GoldenStore:
    return store(request.param)


def sample(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some of the rows, spread over all of them."""
    return rows[:: max(1, len(rows) // SAMPLE)]


def as_json(message: dict[str, Any]) -> dict[str, Any]:
    """Return Java's reading of a message under the command's names, with a digest of the body."""
    same = (
        *("topic", "queueId", "queueOffset", "physicalOffset", "size", "sysFlag", "flag"),
        *("bornTimestamp", "storeTimestamp", "reconsumeTimes", "preparedTransactionOffset"),
        "properties",
    )
    return {
        **{name: message[name] for name in same},
        "bodyCrc": message["bodyCRC"],
        "bornHost": message["bornHost"].removeprefix("/"),
        "storeHost": message["storeHost"].removeprefix("/"),
        "body": message["bodySha1"],
        "msgId": message["offsetMsgId"],
    }


def with_body_digest(message: dict[str, Any]) -> dict[str, Any]:
    body = base64.b64decode(message["body"], validate=True)
    return {**message, "body": hashlib.sha1(body).hexdigest()}


def offsets(ran: Ran) -> list[int]:
    return [message["physicalOffset"] for message in ran.json["messages"]]


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_field_of_every_message_of_the_queues(
    mqlake: Mqlake, golden: GoldenStore, every: int
) -> None:
    truth = {message["physicalOffset"]: as_json(message) for message in golden.messages()}
    queues = golden.queries()["queues"][STORES.index(golden.name) % every :: every]
    seen = 0
    for queue in queues:
        start, end = queue["minOffset"], queue["maxOffset"]
        ran = mqlake(
            *("query", golden.path, "--topic", queue["topic"], "--queue", queue["queueId"]),
            *("--offset", start, "--max", 100_000, "--json"),
        )
        answer = ran.json
        assert ran.code == (0 if end > start else 1)
        assert (answer["minOffset"], answer["maxOffset"], answer["truncated"]) == (
            start,
            end,
            False,
        )
        for position, message in enumerate(answer["messages"], start):
            assert message["queueOffset"] == position
            assert with_body_digest(message) == truth[message["physicalOffset"]]
        seen += len(answer["messages"])
        assert answer["nextOffset"] == end
    assert seen == sum(queue["maxOffset"] - queue["minOffset"] for queue in queues) > 0


def test_by_key(mqlake: Mqlake, golden: GoldenStore) -> None:
    messages = golden.messages()
    for row in sample(golden.queries()["queryMessage"]):
        kind = ("--index-type", row["indexType"]) if "indexType" in row else ()
        ran = mqlake(
            *("query", golden.path, "--topic", row["topic"], f"--key={row['key']}", *kind),
            *("--begin", row["begin"], "--end", row["end"], "--max", row["maxNum"], "--json"),
        )
        found = offsets(ran)
        having = [m["physicalOffset"] for m in messages if _is_indexed(m, row)]
        assert ran.code == (0 if found else 1)
        if row["begin"] == 0:
            assert found == having[-row["maxNum"] :]
            assert ran.json["truncated"] == (len(having) > row["maxNum"])
        else:
            # RocketMQ also answers other keys of the same hash, and those use up its limit.
            assert set(having).intersection(row["offsets"]) <= set(found) <= set(having)


def _is_indexed(message: dict[str, Any], row: dict[str, Any]) -> bool:
    if message["topic"] != row["topic"] or message["sysFlag"] & 12 == 12:
        return False
    properties = message["properties"]
    if "indexType" in row:
        return bool(properties.get("TAGS") == row["key"])
    keys = properties.get("KEYS", "").split(" ")
    return row["key"] in (properties.get("UNIQ_KEY"), *keys)


def test_by_time(mqlake: Mqlake, golden: GoldenStore) -> None:
    for row in sample(golden.queries()["getOffsetInQueueByTime"]):
        for boundary in ("lower", "upper"):
            if boundary.upper() not in row:  # 4.9 knows no boundary, and answers the nearest
                continue
            ran = mqlake(
                *("query", golden.path, "--topic", row["topic"], "--queue", row["queueId"]),
                *("--time", row["timestamp"], "--boundary", boundary, "--json"),
            )
            assert (ran.code, ran.json["offset"]) == (0, row[boundary.upper()])
            assert [m["queueOffset"] for m in ran.json["messages"]] in ([], [ran.json["offset"]])


def test_by_id_and_by_unique_key(mqlake: Mqlake, golden: GoldenStore) -> None:
    by_key: dict[tuple[str, str], list[int]] = {}
    for message in golden.messages():
        key = message["topic"], message["uniqKey"]
        by_key.setdefault(key, []).append(message["physicalOffset"])
    for message in sample(golden.messages()):
        ran = mqlake("query", golden.path, "--id", message["offsetMsgId"], "--json")
        assert ran.code == 0
        assert ran.json["truncated"] is False
        (found,) = ran.json["messages"]
        assert with_body_digest(found) == as_json(message)
        if message["uniqKey"] and message["sysFlag"] & 12 != 12:
            ran = mqlake(
                *("query", golden.path, "--topic", message["topic"]),
                *("--unique-key", message["uniqKey"], "--json"),
            )
            assert offsets(ran) == [max(by_key[message["topic"], message["uniqKey"]])]


def test_by_time_range(mqlake: Mqlake, golden: GoldenStore) -> None:
    queued = [
        m for m in golden.messages() if m["topic"] == "TopicB" and m["sysFlag"] & 12 in (0, 8)
    ]
    begin, end = queued[40]["storeTimestamp"], queued[200]["storeTimestamp"]
    inside = [m for m in queued if begin <= m["storeTimestamp"] <= end]
    inside.sort(key=lambda message: (message["storeTimestamp"], message["physicalOffset"]))
    arguments = ("query", golden.path, "--topic", "TopicB", "--begin", begin, "--end", end)
    whole = mqlake(*arguments, "--max", 10_000, "--json")
    assert offsets(whole) == [message["physicalOffset"] for message in inside]
    assert whole.json["truncated"] is False
    cut = mqlake(*arguments, "--max", 5, "--json")
    assert offsets(cut) == offsets(whole)[:5]
    assert cut.json["truncated"] is True
    tagged = mqlake(*arguments, "--max", 10_000, "--tag", "Aa", "--json")
    assert offsets(tagged) == [
        m["physicalOffset"] for m in inside if m["properties"].get("TAGS") == "Aa"
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["--id", "7F000001000052080000000000000001"],
        ["--id", "7F000001000051AF0000000000000000", "--topic", "TopicA"],
        ["--topic", "TopicA", "--key", "no such key"],
        ["--topic", "NoSuchTopic", "--key", "键-3"],
        ["--topic", "TopicA", "--unique-key", "0"],
        ["--topic", "TopicA", "--queue", "99", "--offset", "0"],
        ["--topic", "TopicA", "--queue", "0", "--offset", "1000000"],
        ["--topic", "TopicA", "--queue", "99", "--time", "0"],
        ["--topic", "TopicA", "--begin", "1", "--end", "2"],
    ],
)
def test_nothing_matched(mqlake: Mqlake, options: list[str]) -> None:
    path = store("rmq5-clean").path
    ran = mqlake("query", path, *options, "--json")
    assert (ran.code, ran.json["messages"], ran.json["truncated"]) == (1, [], False)
    assert ran.err == ""
    said = mqlake("query", path, *options)
    assert said.code == 1
    assert "time" in str(options) or said.out.startswith("Nothing matched")


def test_a_mistyped_topic_names_the_nearest(mqlake: Mqlake) -> None:
    path = store("rmq5-clean").path
    ran = mqlake("query", path, "--topic", "TopcA", "--key", "key-1")
    line = "Nothing matched: topic 'TopcA' does not exist; the nearest is TopicA.\n"
    assert (ran.code, ran.out.lstrip(), ran.err) == (1, line, "")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--id", "7F"], "a message id has 32 or 56 hex digits, but this is '7F'"),
        (["--topic", "../commitlog", "--key", "k"], "topic"),
        (["--topic", "..", "--queue", "0", "--offset", "0"], "topic"),
        (["--topic", "", "--begin", "0", "--end", "1"], "topic"),
    ],
)
def test_invalid_queries_are_refused(mqlake: Mqlake, options: list[str], reason: str) -> None:
    ran = mqlake("query", store("rmq5-clean").path, *options)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert ran.err.count("\n") == 1


def test_a_table_of_messages(mqlake: Mqlake) -> None:
    golden = store("rmq5-clean")
    ran = mqlake("query", golden.path, "--topic", "TopicA", "--queue", 0, "--offset", 3, "--max", 3)
    title, _, head, _, *rows, _, summary = ran.out.splitlines()
    truth = [m for m in golden.messages() if m["topic"] == "TopicA" and m["queueId"] == 0][3:6]
    assert title == "TopicA"
    assert head.split()[:3] == ["queue", "offset", "stored"]
    for row, message in zip(rows, truth, strict=True):
        assert row.split()[:2] == ["0", str(message["queueOffset"])]
        assert str(message["storeTimestamp"]) in row
        assert (message["keys"] or "") in row
    assert summary == "3 messages; there are more (raise --max)."


def test_all_fields_of_one_message(mqlake: Mqlake) -> None:
    golden = store("rmq5-clean")
    message = next(m for m in golden.messages() if m["keys"] == "order-9691")
    out = mqlake("query", golden.path, "--id", message["offsetMsgId"]).out
    for value in (*message["properties"].items(), message["offsetMsgId"], message["topic"]):
        assert all(str(part) in out for part in ([value] if isinstance(value, str) else value))
    assert out.splitlines()[-1] == "1 message, complete."


def test_a_terminal_never_gets_control_characters(mqlake: Mqlake, tmp_path: Path) -> None:
    from mqlake.formats.record import encode

    properties = {"KEYS": "k", "TAGS": "\x1b]0;owned\x07", "evil": "\x1b[2J[red]"}
    record = encode(topic="T", body=b"paid\rpaid twice", properties=properties, store_timestamp=1)
    log = tmp_path / "store" / "commitlog"
    log.mkdir(parents=True)
    (log / f"{0:020d}").write_bytes(record.ljust(4096, b"\0"))
    ran = mqlake("query", tmp_path / "store", "--topic", "T", "--key", "k")
    assert ran.code == 0
    assert not {"\x1b", "\x07", "\r"}.intersection(ran.out)
    assert "\\x1b[2J[red]" in ran.out
