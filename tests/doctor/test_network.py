"""Ports in use, and name servers that answer or do not."""

from __future__ import annotations

import socket

import pytest

from mqlake.doctor import network
from mqlake.doctor.finding import Severity
from mqlake.doctor.network import name_servers, ports
from tests.broker.running import next_port


def test_a_port_in_use_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    port = next_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        monkeypatch.setattr(network, "PORTS", {port: "broker"})
        found = ports()
    assert (found.state, found.found) == (Severity.NOTE, f"in use: {port} (broker)")
    assert ports().state is Severity.OK


def test_a_name_server_accepts_connections_or_is_a_problem() -> None:
    port = next_port()
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        (answers,) = name_servers([f"127.0.0.1:{port}"])
    refused, odd, high = name_servers([f"127.0.0.1:{port}", "nothing", "127.0.0.1:99999"])
    assert answers.state is Severity.OK
    assert (refused.state, refused.found) == (Severity.PROBLEM, "no connection: Connection refused")
    assert {odd.state, high.state} == {Severity.PROBLEM}
