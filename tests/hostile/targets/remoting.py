"""What comes over the network: frames, and requests to servers that run."""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from mqlake.broker.broker import Broker
from mqlake.broker.settings import FAST_PORT_DISTANCE, make_broker_settings
from mqlake.namesrv.name_server import NameServer
from mqlake.programs.ports import free_port
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import FrameError, HeaderError
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.json_header import decode_typed
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.lane.test_batches import batch_of, logs, put_both
from tests.broker.lane.test_send_frame import check
from tests.broker.send.random_sends import hostile_body, mutated, mutated_batches
from tests.hostile.cases import Case, Target, require, same
from tests.hostile.disk import sandbox
from tests.protocol import mutations

FRAMES, REQUESTS, RUNS, BATCHES = 200, 50, 50, 10
"""Inputs of a case, so that what a case costs by itself does not count."""
RESTART = 100
"""Cases after which a server is stopped, and started again on what it left."""
PATIENCE = 30.0
"""Seconds for the answers to the requests of a case."""

CODES = tuple(map(int, RequestCode))
PARKED = {
    RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE,
    RequestCode.NOTIFICATION, RequestCode.PEEK_MESSAGE,
}  # fmt: skip
"""Requests whose answer may wait until there is a message."""

R = TypeVar("R")
Start = Callable[[AsyncExitStack, Path], Coroutine[Any, Any, int]]

_TYPED = decode_typed({RequestCode.SEND_MESSAGE_V2: SendMessageHeaderV2})
_LIMITS = Limits(frame=1 << 20, header=1 << 17)


def frames(case: Case) -> None:
    """Read mutated frames whole and in pieces, one by one and behind each other."""
    parts: list[bytes] = []
    for _ in range(FRAMES):
        data, told = mutations.frames(case.dice, CODES)
        case.feed(len(data))
        case.story[:] = [told]
        case.seen["read" if _read(data, case) else "refused"] += 1
        parts.append(data)
    stream = b"".join(case.dice.sample(parts, 20))
    same(_commands([stream]), _commands(_cut(case, stream)), "a stream and its pieces")


def _read(data: bytes, case: Case) -> bool:
    """Read the beginning of a stream; say whether it has a command."""
    commands, _ = _commands([data])
    for frame in commands:
        same(_commands([frame])[0], [frame], "a command and the same one, written and read")
    for decode in (_TYPED,):
        reader = FrameReader(_LIMITS, decode)
        with suppress(FrameError):
            for command in reader.feed(data):
                with suppress(HeaderError):
                    command.header(SendMessageHeaderV2)
                with suppress(HeaderError):
                    require(all(type(v) is str for v in command.fields.values()), "a field")
        require(reader.unfinished <= _LIMITS.frame + 4, "more is held than a frame may have")
    return bool(commands)


def _commands(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """Return what was read, written again, and how it ended."""
    reader, found = FrameReader(_LIMITS), list[bytes]()
    for piece in pieces:
        try:
            for command in reader.feed(piece):
                with suppress(HeaderError, FrameError):
                    found.append(encode(command))
        except FrameError:
            return found, "refused"
    return found, "held" if reader.unfinished else "at the end"


def _cut(case: Case, data: bytes) -> list[bytes]:
    pieces: list[bytes] = []
    while data:
        size = case.dice.choice((1, 7, 100, 1000, 10_000))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


class Served:
    """A server on a loop of its own, between cases at rest."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._place = sandbox()
        self._root = self._place.__enter__()
        self.faults: list[str] = []
        self._cases = 0
        self._port = self._run(start(self._stack, self._root / "store"))
        logging.getLogger("mqlake").addHandler(_Notice(self.faults))
        logging.getLogger("mqlake").propagate = False
        atexit.register(self._place.__exit__, None, None, None)
        self.codes = self._run(self._known())

    def take(self, case: Case, data: bytes, asked: dict[int, int]) -> None:
        """Send bytes over a new connection; see that what was asked is answered."""
        self._cases += 1
        if self._cases % RESTART == 0:
            self._run(self._stack.aclose())
            self._port = self._run(self._start(self._stack, self._root / "store"))
        self._run(self._talk(case, data, asked))
        if self.faults:
            fault = self.faults[0]
            self.faults.clear()
            require(False, fault)
        outside = [path.name for path in self._root.iterdir() if path.name != "store"]
        require(not outside, f"files outside of the store: {outside}")

    def _run(self, doing: Coroutine[Any, Any, R]) -> R:
        return self._loop.run_until_complete(doing)

    async def _known(self) -> list[int]:
        """Return the codes that the server serves."""
        client = RemotingClient()
        known: list[int] = []
        for code in CODES:
            answer = await client.request(f"127.0.0.1:{self._port}", request(code), PATIENCE)
            if answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                known.append(code)
        await client.close()
        return known

    async def _talk(self, case: Case, data: bytes, asked: dict[int, int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        answers = FrameReader(Limits())
        waiting = {opaque: code for opaque, code in asked.items() if code not in PARKED}
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(data)
                while waiting and (read := await reader.read(1 << 16)):
                    for answer in answers.feed(read):
                        _count(case, answer)
                        waiting.pop(answer.opaque, None)
        except TimeoutError:
            require(False, f"no answer to requests {set(waiting.values())}")
        except ConnectionError:
            pass
        finally:
            writer.close()
        if asked:
            require(not waiting, f"closed before it answered requests {set(waiting.values())}")


def _count(case: Case, answer: Command) -> None:
    case.seen["answered" if answer.code == 0 else "refused"] += 1


class _Notice(logging.Handler):
    """What a server logs as an accident is one."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(self.format(record))


async def _broker(stack: AsyncExitStack, path: Path) -> int:
    port = free_port(-FAST_PORT_DISTANCE)
    settings = {
        "mappedFileSizeCommitLog": 8 << 20, "mappedFileSizeConsumeQueue": 2000,
        "maxHashSlotNum": 100, "maxIndexNum": 4000, "brokerName": "broker-a",
        "listenPort": port, "storePathRootDir": str(path), "maxCommitLogBytes": 32 << 20,
    }  # fmt: skip
    await stack.enter_async_context(Broker(make_broker_settings(settings)))
    return port


async def _names(stack: AsyncExitStack, path: Path) -> int:
    kv = path / "kv.json"
    server = NameServer({"listenPort": 0, "kvConfigPath": str(kv)})
    port = await server.start()
    stack.push_async_callback(server.stop)
    return port


@functools.cache
def _served(start: Start) -> Served:
    return Served(start)


def requests(case: Case, start: Start) -> None:
    """Send requests of all codes with any fields; now and then frames that are none."""
    server = _served(start)
    asked: dict[int, int] = {}
    parts: list[bytes] = []
    for opaque in range(REQUESTS):
        data = mutations.requests(case.dice, server.codes, opaque)
        (command,) = FrameReader(Limits()).feed(data)
        asked[opaque] = command.code
        parts.append(data)
    data = b"".join(parts)
    case.feed(len(data), inputs=REQUESTS)
    case.tell(f"requests {list(asked.values())}")
    server.take(case, data, asked)
    broken = [mutations.frames(case.dice, CODES)[0] for _ in range(3)]
    server.take(case, b"".join(broken), {})


def to_broker(case: Case) -> None:
    requests(case, _broker)


def to_name_server(case: Case) -> None:
    requests(case, _names)


def runs(case: Case) -> None:
    """Read mutated sends, each from where the one before it ends, and put hostile batches."""
    for _ in range(RUNS):
        draw = mutated_batches if case.dice.random() < 0.3 else mutated
        data, at = draw(case.dice), 0
        case.feed(len(data))
        while at < len(data) and check(data, at):
            case.seen["taken"] += 1
            at += 4 + int.from_bytes(data[at : at + 4])
    log, other = logs()
    for _ in range(BATCHES):
        body = hostile_body(case.dice)
        case.feed(len(body))
        case.seen["put" if put_both(log, other, batch_of(body)) else "left"] += 1


TARGETS = (
    Target(
        "runs-bounds-checked",
        "Runs of sends, some with hostile values, some with changed bytes: the "
        "kernel reads the same as a reader of single frames. Bounds-checked.",
        runs,
        0.4,
        bounds_checked=True,
    ),
    Target(
        "frames",
        "Mutated remoting frames, JSON and binary: read the same whole and in pieces, and written "
        "again the same, or refused with a reason; at most one frame is held in memory.",
        frames,
        4.0,
    ),
    Target(
        "name-server",
        "Requests of all codes with hostile fields and bodies, and invalid frames, to a running "
        "name server: each request is answered, none causes an internal error, and the server "
        "restarts.",
        to_name_server,
        0.2,
    ),
    Target(
        "broker",
        "The same to a running broker, which is restarted on its store from time to time; no file "
        "is outside the store.",
        to_broker,
        0.4,
    ),
)
