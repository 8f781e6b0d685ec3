"""Messages: each way to find one, its body in each form, and giving one to a group again."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
from pathlib import Path

import pytest

from mqlake.client.blocking import Consumer
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.message import Message
from mqlake.testing.running_broker import RunningBroker
from tests.console.messages.parcels import NAME, descriptors, parcel
from tests.console.site import Site, site, words
from tests.until import until


def send(running: RunningBroker, topic: str, *bodies: bytes, **fields: object) -> list[str]:
    """Send messages, and return their ids."""
    with running.producer() as producer:
        return [
            producer.send(Message(topic=topic, body=body, **fields)).message_id  # type: ignore[arg-type]
            for body in bodies
        ]


def receive(consumer: Consumer) -> None:
    message = consumer.receive()
    assert message is not None
    consumer.ack(message)


def first_link(text: str) -> str:
    found = re.search(r'href="(/messages/message\?[^"]*)"', text)
    assert found is not None
    return found[1].replace("&amp;", "&")


async def open_first(visitor: Site, path: str) -> str:
    return (await visitor.get(first_link((await visitor.get(path)).text))).text


def test_finds_by_time_and_says_that_all_was_searched(running: RunningBroker) -> None:
    send(running, "timed", b"one", b"two", b"three")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            found = words(await visitor.get("/messages?topic=timed"))
            assert "3 found. Everything in the range was searched." in found
            none = words(await visitor.get("/messages?topic=timed&end=1000"))
            assert "0 found." in none
            late = words(await visitor.get("/messages?topic=timed&begin=99999999999999"))
            assert "No message was found." in late

    asyncio.run(visit())


def test_says_where_it_stopped_and_continues_there(running: RunningBroker) -> None:
    send(running, "long", *(f"body-{number}".encode() for number in range(30)))

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            path, seen = "/messages?topic=long&most=7", set[str]()
            for _ in range(40):
                shown = await visitor.get(path)
                seen |= set(re.findall(r"body-\d+", shown.text))
                later = re.search(r'<a href="([^"]*)">Later messages', shown.text)
                if later is None:
                    break
                assert "Stopped after 7 messages; there may be later ones." in words(shown)
                path = later[1].replace("&amp;", "&")
            assert len(seen) == 30

    asyncio.run(visit())


def test_finds_by_key_id_and_offset(running: RunningBroker) -> None:
    (message_id,) = send(running, "keyed", b"found me", keys=("order-7",), tags="A")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for query in (
                "topic=keyed&by=key&key=order-7",
                f"topic=keyed&by=unique&key={message_id}",
                "topic=keyed",
            ):
                assert "found me" in words(await visitor.get(f"/messages?{query}")), query
            page = await open_first(visitor, "/messages?topic=keyed")
            offset_id = re.search(r'class="mono">([0-9A-F]{32})<', page)
            assert offset_id is not None
            by_id = await visitor.get(f"/messages?by=id&key={offset_id[1]}")
            assert "found me" in words(by_id)
            missing = await visitor.get("/messages?topic=keyed&by=key&key=order-8")
            assert "No message was found." in words(missing)
            assert "Another topic may have the message" in words(missing)

    asyncio.run(visit())


def test_shows_a_body_as_json_text_and_bytes(running: RunningBroker) -> None:
    send(running, "json", json.dumps({"a": [1, "<script>"]}).encode())
    send(running, "bytes", b"\x00\xff<script>")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            page = await open_first(visitor, "/messages?topic=json")
            assert "&#34;&lt;script&gt;&#34;" in page
            assert "<script>" not in page.replace("<script src", "")
            page = await open_first(visitor, "/messages?topic=bytes")
            assert "00 ff 3c 73" in page
            assert r"\x00\xff&lt;script&gt;" in page

    asyncio.run(visit())


def test_reads_an_avro_body_by_its_schema(running: RunningBroker) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    send(running, "avro", b"\x0e")  # 7, in zigzag

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            place = {"topic": "avro", "broker": "broker-a", "form": "avro"}
            link = first_link((await visitor.get("/messages?topic=avro")).text)
            place |= {"queue": link.split("queue=")[1].partition("&")[0], "offset": "0"}
            shown = await visitor.post("/messages/decode", {**place, "schema": json.dumps(schema)})
            assert '"a": 7' in words(shown)
            wrong = await visitor.post("/messages/decode", {**place, "schema": '{"type": "?"}'})
            assert wrong.status_code == 400
            assert "The body cannot be read as avro" in words(wrong)

    asyncio.run(visit())


def test_reads_a_protobuf_body_by_its_descriptors(running: RunningBroker) -> None:
    send(running, "protobuf", parcel(id=7, note=["<i>", "fragile"], state=1))

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            link = first_link((await visitor.get("/messages?topic=protobuf")).text)
            form = {
                "topic": "protobuf",
                "broker": "broker-a",
                "offset": "0",
                "form": "protobuf",
                "queue": link.split("queue=")[1].partition("&")[0],
                "schema": base64.b64encode(descriptors()).decode(),
            }
            shown = await visitor.post("/messages/decode", {**form, "message": NAME})
            assert shown.status_code == 200
            assert "By the schema" in words(shown)
            for text in ('"id": 7', '"<i>", "fragile"', '"state": "SENT"'):
                assert text in words(shown)
            assert "<i>" not in shown.text
            wrong = await visitor.post("/messages/decode", {**form, "message": "shop.Parcle"})
            assert wrong.status_code == 400
            assert NAME in words(wrong)

    asyncio.run(visit())


def test_shows_the_trace_of_a_message(running: RunningBroker) -> None:
    with running.producer(group="traced-producers", trace=True) as producer:
        message_id = producer.send(Message(topic="traced", body=b"x")).message_id
        producer.send(Message(topic="traced", body=b"another one"))
    settings = ConsumerSettings(consume_from="first", trace=True)
    with running.consumer("traced-group", "traced", settings=settings) as consumer:
        receive(consumer)
        receive(consumer)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            found = await visitor.get(f"/messages?topic=traced&by=unique&key={message_id}")
            link, text = first_link(found.text), ""

            async def is_whole() -> bool:
                nonlocal text
                text = words(await visitor.get(link)).partition(" Trace ")[2]
                return "consumed traced-group" in text

            await until(is_whole)
            sent, delivered, consumed = (
                text.index(each)
                for each in ("sent traced-producers", "delivered traced-group", "consumed traced")
            )
            assert sent < delivered < consumed
            assert f"to traced on {running.address}, 1 bytes" in text
            assert text.count("sent traced-producers") == 1

    asyncio.run(visit())


def test_reads_a_body_by_a_schema_of_the_directory(running: RunningBroker, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    (tmp_path / "R.avsc").write_text(json.dumps(schema))
    (tmp_path / "notes.txt").write_text("no schema")
    send(running, "chosen", b"\x0e")

    async def visit() -> None:
        async with site(running.name_server, schemas=tmp_path) as visitor:
            place = {"topic": "chosen", "broker": "broker-a"}
            link = first_link((await visitor.get("/messages?topic=chosen")).text)
            page = (await visitor.get(link)).text
            assert "<option>R.avsc</option>" in page
            assert "notes.txt" not in page
            place |= {"queue": link.split("queue=")[1].partition("&")[0], "offset": "0"}
            shown = await visitor.post("/messages/decode", {**place, "chosen": "R.avsc"})
            assert '"a": 7' in words(shown)
            for name in ("../R.avsc", "notes.txt", "/etc/passwd", "gone.avsc"):
                wrong = await visitor.post("/messages/decode", {**place, "chosen": name})
                assert wrong.status_code == 404

    asyncio.run(visit())


def test_the_live_tail_shows_the_newest_first(running: RunningBroker) -> None:
    send(running, "tailed", *(f"body-{number:02d}".encode() for number in range(5)))

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            shown = await visitor.get("/messages/tail?topic=tailed&most=3")
            assert re.findall(r"body-\d\d", shown.text) == ["body-04", "body-03", "body-02"]
            assert "The newest messages of" in words(shown)

    asyncio.run(visit())


def test_one_consumer_consumes_a_message_again(running: RunningBroker) -> None:
    send(running, "again", b"once more")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            link = first_link((await visitor.get("/messages?topic=again")).text)
            queue = link.split("queue=")[1].partition("&")[0]
            form = {"topic": "again", "broker": "broker-a", "queue": queue, "offset": "0"}
            nobody = await visitor.post("/messages/consume", {**form, "group": "nobody"})
            assert nobody.status_code == 409
            shown = words(await visitor.get(link))
            assert "redo has consumed it" in shown

    with running.consumer("redo", "again") as consumer:
        receive(consumer)
        consumer.commit()
        asyncio.run(visit())


def test_a_dead_letter_is_delivered_to_its_group_again(running: RunningBroker) -> None:
    (_,) = send(running, "%DLQ%failed", b"dead", properties={"RETRY_TOPIC": "origin", "mine": "x"})
    send(running, "origin", b"first")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            page = await open_first(visitor, "/messages?topic=%25DLQ%25failed")
            assert "Deliver this dead letter to failed again" in page
            link = first_link((await visitor.get("/messages?topic=%25DLQ%25failed")).text)
            queue = link.split("queue=")[1].partition("&")[0]
            form = {"topic": "%DLQ%failed", "broker": "broker-a", "queue": queue, "offset": "0"}
            shown = words(await visitor.post("/messages/resend", form))
            assert "A copy was sent to group failed as" in shown

    with running.consumer("failed", "origin") as consumer:
        receive(consumer)
        asyncio.run(visit())
        again = consumer.receive()
        assert again is not None
        assert again.body == b"dead"
        assert again.topic == "origin"
        assert again.properties["mine"] == "x"
        consumer.ack(again)


def test_a_wrong_number_is_named(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for query, said in (
                ("begin=now", "From is 'now', and must be a number"),
                ("queue=-1", "Queue is '-1', and must be a number"),
                ("by=odd", "Messages cannot be found by 'odd'"),
                ("by=key", "The key is missing"),
            ):
                refused = await visitor.get(f"/messages?topic=t&{query}")
                assert refused.status_code == 400
                assert said in words(refused)

    asyncio.run(visit())


def test_an_id_names_only_brokers_that_are_registered(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            with socket.create_server(("127.0.0.1", 0)) as other:
                other.setblocking(False)
                host = f"7F000001{other.getsockname()[1]:08X}"
                refused = await visitor.get(f"/messages?by=id&key={host}{0:016X}")
                assert refused.status_code == 404
                assert "No broker is registered at 127.0.0.1" in words(refused)
                with pytest.raises(BlockingIOError):
                    other.accept()  # Nobody has connected.
            wrong = await visitor.get("/messages?by=id&key=x")
            assert wrong.status_code == 400

    asyncio.run(visit())


def test_a_link_never_shows_another_message(running: RunningBroker) -> None:
    send(running, "linked", b"this one")

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            link = first_link((await visitor.get("/messages?topic=linked")).text)
            assert (await visitor.get(link)).status_code == 200
            place, _, identity = link.partition("&id=")
            assert identity
            other = await visitor.get(f"{place}&id=another")
            assert other.status_code == 409
            nowhere = await visitor.get(link.replace("broker=broker-a", "broker="))
            assert nowhere.status_code == 404

    asyncio.run(visit())
