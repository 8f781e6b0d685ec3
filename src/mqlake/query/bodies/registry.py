"""A schema registry with Confluent's HTTP API: schemas by id, and the latest of a subject."""

from __future__ import annotations

import base64
import json
import time
from http.client import HTTPException
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from mqlake.errors import FormatError, JobError

_TIMEOUT = 10.0
_ATTEMPTS = 4
_LARGEST_ANSWER = 16 << 20
_MOST_SCHEMAS = 4096
_NOT_FOUND = 404
_SERVER_ERROR = 500


class Registry:
    """The registry at a URL (`http://user:password@host:8081`), as one process uses it.

    A schema with an id never changes, so the newest 4,096 that bodies name are kept.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FormatError(f"registry {_hidden(url)!r} is not the URL of a schema registry")
        netloc = parts.netloc.rpartition("@")[2]
        self._url = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            pair = f"{parts.username}:{parts.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._schemas: dict[int, Any] = {}

    def schema(self, number: int) -> Any:
        """Return the schema of this id in fastavro's form.

        Raises:
            FormatError: the registry does not have the schema, or it is not an Avro schema.
            JobError: the registry does not answer.
        """
        if number not in self._schemas:
            found = self._asked(number)
            if len(self._schemas) >= _MOST_SCHEMAS:
                self._schemas.pop(next(iter(self._schemas)))  # It is requested again.
            self._schemas[number] = found
        found = self._schemas[number]
        if isinstance(found, FormatError):
            raise FormatError(str(found))
        return found

    def latest(self, subject: str) -> str:
        """Return the text of a subject's latest schema; raises FormatError, JobError."""
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            raise FormatError(f"{self._url}: subject {subject} does not exist")
        return self._text(answer, f"subject {subject}")

    def _asked(self, number: int) -> Any:
        """Return a schema, or the error that explains why it is missing."""
        from mqlake.query.bodies.avro_schema import compiled, parse_schema

        answer = self._get(f"/schemas/ids/{number}")
        if answer is None:
            return FormatError(f"the registry has no schema {number}")
        try:
            return compiled(parse_schema(self._text(answer, f"schema {number}")))
        except FormatError as error:
            return error

    def _text(self, answer: dict[str, Any], what: str) -> str:
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise FormatError(f"{what} has type {kind}, not AVRO")
        if answer.get("references"):
            raise FormatError(f"{what} refers to other subjects: pass the whole schema")
        return str(answer.get("schema"))

    def _get(self, path: str) -> dict[str, Any] | None:
        # The constructor accepts only http and https.
        request = Request(self._url + path, headers=self._headers)  # noqa: S310
        error: Exception | None = None
        for attempt in range(_ATTEMPTS):
            try:
                with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                    return _object(answer.read(_LARGEST_ANSWER))
            except HTTPError as failed:
                if failed.code == _NOT_FOUND:
                    return None
                if failed.code < _SERVER_ERROR:
                    raise JobError(f"{self._url}{path}: {failed.code} {failed.reason}") from None
                error = failed
            except (URLError, OSError, HTTPException, ValueError) as failed:
                error = failed
            time.sleep(0.2 * 2**attempt)
        raise JobError(f"{self._url}{path}: the schema registry does not answer: {error}")


def _object(answer: bytes) -> dict[str, Any]:
    found: Any = json.loads(answer)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004
    return cast("dict[str, Any]", found)


def _hidden(url: str) -> str:
    return url.rpartition("@")[2]
