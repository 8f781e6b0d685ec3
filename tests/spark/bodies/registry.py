"""A schema registry with the two requests of Confluent's that decoding makes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RegistryServer(ThreadingHTTPServer):
    """Schemas by their number; `asked` are the paths of all requests."""

    def __init__(self, schemas: dict[int, dict[str, object]], latest: dict[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas, self.latest = schemas, latest
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.authorizations.append(self.headers["Authorization"])
        parts = self.path.split("/")
        number = int(parts[-1]) if parts[1] == "schemas" else self.server.latest.get(parts[2], -1)
        found = self.server.schemas.get(number)
        answer = json.dumps(found or {"error_code": 40403}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Write nothing."""


@contextmanager
def running(
    schemas: dict[int, dict[str, object]], latest: dict[str, int] | None = None
) -> Iterator[RegistryServer]:
    with RegistryServer(schemas, latest or {}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
