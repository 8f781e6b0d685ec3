"""A real HAProxy before the servers of a test."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.until import until

FETCHED = Path(__file__).parents[2] / "build" / "haproxy" / "usr"
SOURCE = "127.0.0.9"
"""The address from which it connects to servers."""

Address = tuple[str, int]


class HaproxyMissingError(Exception):
    """There is no HAProxy; the message is one line that says how to get one."""


def program() -> tuple[str, dict[str, str]]:
    """Return the path of HAProxy, and the environment that it needs.

    Raises:
        HaproxyMissingError: it is not installed.
    """
    if (found := shutil.which("haproxy")) is not None:
        return found, dict(os.environ)
    fetched = FETCHED / "sbin" / "haproxy"
    if not fetched.exists():
        raise HaproxyMissingError("haproxy is not installed (apt-get install haproxy)")
    libraries = os.pathsep.join(str(each) for each in (FETCHED / "lib").glob("*-linux-gnu"))
    return str(fetched), {**os.environ, "LD_LIBRARY_PATH": libraries}


@asynccontextmanager
async def proxying(
    directory: Path, servers: Mapping[Address, Address], header: str
) -> AsyncGenerator[None]:
    """Forward connections while the block runs.

    Args:
        servers: by the address at which HAProxy listens for each of them.
        header: the option of a server that sends its header, such as "send-proxy-v2".

    Raises:
        HaproxyMissingError: it is not installed.
    """
    path, environment = program()
    lines = ["defaults", "  mode tcp", "  timeout connect 100s"]
    lines += ["  timeout client 100s", "  timeout server 100s", f"  source {SOURCE}"]
    for number, (listened, server) in enumerate(servers.items()):
        lines += [f"listen {number}", "  bind {}:{}".format(*listened)]
        check = "check check-send-proxy inter 100ms"
        lines += ["  server one {}:{} {} {}".format(*server, header, check)]
    settings, log = directory / "haproxy.cfg", directory / "haproxy.log"
    settings.write_text("\n".join([*lines, ""]))
    with log.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            path, "-db", "-f", str(settings), stdout=output, stderr=output, env=environment
        )
    try:
        for listened in servers:
            await until(lambda at=listened: process.returncode is not None or _accepts(at))
        assert process.returncode is None, log.read_text()
        yield
        assert process.returncode is None, log.read_text()
        assert "is DOWN" not in log.read_text()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _accepts(address: Address) -> bool:
    try:
        _, writer = await asyncio.open_connection(*address)
    except OSError:
        return False
    writer.close()
    return True
