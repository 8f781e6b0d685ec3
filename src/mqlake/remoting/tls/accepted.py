"""A connection that was accepted, while it is not decided what it speaks."""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from mqlake.remoting.memory_budget import Holder
from mqlake.remoting.tls.layer import Below, TlsLayer


class Accepted(Holder, Protocol):
    """The protocol of a connection, once its first bytes have told that it is this one.

    Attributes:
        address: "ip:port" of the client.
        is_relayed: whether a proxy has yet to name its client.
    """

    address: str
    is_relayed: bool

    @property
    def is_closed(self) -> bool:
        """Return whether nothing more is to be read."""
        ...

    def secure(self, layer: TlsLayer) -> None:
        """Read and write through TLS from now on."""
        ...

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


A_contra = TypeVar("A_contra", bound=Accepted, contravariant=True)


class Accepting(Protocol[A_contra]):
    """What the connections of one server share."""

    @property
    def buffer(self) -> memoryview:
        """Return the buffer into which data is read."""
        ...

    @property
    def tls(self) -> Below:
        """Return what TLS connections need."""
        ...

    def opened(self, peer: A_contra) -> str | None:
        """Count a connection; return why it must be closed, None if the maximum allows it."""
        ...

    def lost(self, peer: A_contra) -> None:
        """Forget a connection."""
        ...
