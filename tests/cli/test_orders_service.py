"""The example of a web service publishes what it stores, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from mqlake.testing import broker

pytest.importorskip("fastapi", reason="the example needs FastAPI")
testclient = pytest.importorskip("fastapi.testclient", reason="its test needs httpx")

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_stored_orders_are_published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("DATABASE", str(tmp_path / "orders.sqlite"))
    with broker() as running:
        monkeypatch.setenv("NAME_SERVERS", running.name_server)
        import orders_service as service

        with testclient.TestClient(service.app) as client:
            placed = client.post("/orders", json={"customer": "ada", "amount": 5})
            assert placed.status_code == 200
            assert client.post("/orders", json={"customer": "bob", "amount": 0}).status_code == 422
            placed_again = client.post("/orders", json={"customer": "cyd", "amount": 7})
        with running.consumer("readers", service.TOPIC) as consumer:
            found = [consumer.receive(60) for _ in range(2)]
            assert consumer.receive(1) is None
    published = {json.loads(message.body)["id"] for message in found if message}
    assert published == {placed.json()["id"], placed_again.json()["id"]}
    with sqlite3.connect(tmp_path / "orders.sqlite") as database:
        assert {row[0] for row in database.execute("SELECT id FROM orders")} == published
    database.close()
