"""One connection to a broker for one request at a time, without an event loop.

A request over the event loop of another thread costs two thread switches, about as much as the
broker's whole work on a message.
"""

from __future__ import annotations

import socket
import ssl
import struct
from itertools import count
from typing import Self

from mqlake.client.access import ClientAccess
from mqlake.errors import MqlakeError
from mqlake.protocol import json_header
from mqlake.protocol.command import Command
from mqlake.protocol.frames import LENGTH_OF_HEADER, LENGTHS, encode
from mqlake.protocol.signature import signed
from mqlake.remoting.client import split_address
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.tls.contexts import client_context

_LONGEST_FRAME = 1 << 24
_LAST_OPAQUE = 2**31 - 1


class BlockingConnection:
    """Sends requests, and blocks until each is answered. For one thread at a time.

    Args:
        seconds: the timeout of connecting, and of each read or write.
        access: how the broker is reached.

    Raises:
        ConnectionFailedError: nobody listens at "host:port", or it is not the server it should be.
        MqlakeError: a file for TLS cannot be used.
    """

    def __init__(self, address: str, seconds: float, access: ClientAccess) -> None:
        self._address, self._opaques = address, count(1)
        self._credentials = access.credentials
        context = client_context(access.tls) if access.tls else None
        host, port = split_address(address)
        try:
            self._socket = socket.create_connection((host, port), seconds)
            if context is not None:
                self._secure(context, host)
        except OSError as error:
            raise ConnectionFailedError(f"{address}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            return  # TLS continues after a timeout that only the system knows of.
        # A timeout set in Python costs a further system call for each read and write.
        self._socket.settimeout(None)
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _secure(self, context: ssl.SSLContext, host: str) -> None:
        raw = self._socket
        try:
            self._socket = context.wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's side of the connection."""
        self._socket.close()

    @property
    def is_usable(self) -> bool:
        """Return whether the other side has not closed the connection."""
        if isinstance(self._socket, ssl.SSLSocket):
            return _is_silent(self._socket)
        try:
            return self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def request(self, command: Command) -> Command:
        """Return the response to a request. After an error, the connection must not be used again.

        Raises:
            ConnectionFailedError: the connection was lost, or there was no response in time.
                Whether the broker has executed the request is unknown.
        """
        if self._credentials is not None:
            command = signed(command, self._credentials)
        command.opaque = next(self._opaques) & _LAST_OPAQUE
        try:
            self._socket.sendall(encode(command))
            while True:
                answer = self._receive()
                if answer.is_response and answer.opaque == command.opaque:
                    return answer
        except (BlockingIOError, TimeoutError):
            raise ConnectionFailedError(f"{self._address}: no answer in time") from None
        except (OSError, MqlakeError) as error:
            raise ConnectionFailedError(f"{self._address}: {error}") from error

    def _receive(self) -> Command:
        length, header_length = LENGTHS.unpack(self._read(LENGTHS.size))
        if header_length != header_length & LENGTH_OF_HEADER or length > _LONGEST_FRAME:
            raise ConnectionFailedError(f"{self._address}: received a frame that was not requested")
        rest = self._read(length - 4)
        return json_header.decode(rest[:header_length])

    def _read(self, size: int) -> bytes:
        is_tls = isinstance(self._socket, ssl.SSLSocket)
        data = self._socket.recv(size, 0 if is_tls else socket.MSG_WAITALL)
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionFailedError(f"{self._address}: the connection was lost")
            data += more
        return data


def _is_silent(connection: ssl.SSLSocket) -> bool:
    """Return whether a connection is open and no data waits: nothing was requested."""
    seconds = connection.gettimeout()
    try:
        connection.settimeout(0.0)
        connection.recv(1)
    except ssl.SSLWantReadError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(seconds)
    return False
