"""A relay in front of a server that counts what the server sends."""

from __future__ import annotations

import socket
from threading import Thread
from typing import Self

_CHUNK = 1 << 16


class CountingRelay:
    """Passes connections on to a port of this machine.

    Attributes:
        port: where it listens.
        sent: bytes that the server has sent so far.
    """

    def __init__(self, server: int) -> None:
        self._server, self.sent = server, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Thread(target=self._pass_on, args=(client, server), daemon=True).start()
            Thread(target=self._pass_back, args=(server, client), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(_CHUNK):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            server.close()

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(_CHUNK):
                self.sent += len(data)
                client.sendall(data)
        except OSError:
            pass
        client.close()
