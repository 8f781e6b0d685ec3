"""The short version of the handshakes of a night."""

from __future__ import annotations

import random

import pytest

from mqlake.remoting.proxy_protocol import detection
from mqlake.remoting.tls.options import ClientAuth
from mqlake.store.bounds import networks
from tests.tls.handshakes import kinds, run
from tests.tls.handshakes.kinds import KINDS


def test_nothing_gets_in() -> None:
    outcome = run.run(1_200, 1_000_000)
    assert outcome.violations == []
    assert set(outcome.counts) == set(KINDS)
    assert outcome.honest == 60


def test_a_server_that_asks_for_no_certificate_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Open:
        REQUIRE = ClientAuth.NONE

    monkeypatch.setattr(run, "ClientAuth", Open)
    found = run.run(200, 1).violations
    assert any("no certificate" in each for each in found)
    assert any("another authority" in each for each in found)


def test_a_header_that_everybody_may_send_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = networks("0.0.0.0/0")
    is_within = detection._is_within
    monkeypatch.setattr(detection, "_is_within", lambda each, _: is_within(each, everybody))
    found = run.run(90, 1).violations
    assert any("one who is no proxy" in each for each in found)


def test_content_that_is_not_the_clients_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "mutated", lambda data, _: data)
    target_of = kinds.judged

    def judged(target: kinds.Target, body: bytes | None, what: str) -> str:
        return target_of(target, b"other" if body else body, what)

    monkeypatch.setattr(kinds, "judged", judged)
    assert run.run(60, 1).violations


def test_an_attack_that_takes_long_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "STALL", 0.0)
    assert "it took" in run.run(1, 1).violations[0]


def test_changes_change() -> None:
    chance, data = random.Random(1), bytes(range(100))
    changed = [kinds.mutated(data, chance) for _ in range(200)]
    assert sum(each != data for each in changed) > 150
