"""A client in a process of its own, which does what it is asked, a line of JSON for each."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from mqlake.spark.launch import QUICK_START
from tests.peer import java_build, node_build, python_build, rust_build
from tests.peer.java_start import java

PROGRAMS = Path(__file__).parent / "programs"
_LINE = 64 << 20
"""Bytes of the longest answer."""


class ClientMissingError(Exception):
    """No client of this language can run here; the message is one line that says why."""


class RefusedError(Exception):
    """A client's operation failed.

    Attributes:
        kind: the name of the client's own exception.
        code: of RocketMQ's protocol, if the client shows it.
    """

    def __init__(self, kind: str, code: object, text: str) -> None:
        super().__init__(f"{kind} {code}: {text}")
        self.kind, self.code, self.text = kind, code, text

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.kind, self.code, self.text)

    @property
    def shown(self) -> str:
        """What is compared: texts are each server's own."""
        return f"{self.kind} {self.code}" if self.code else self.kind


def _python() -> list[str]:
    source = PROGRAMS.parents[1] / "rocketmq_grpc_python"
    try:
        return [str(python_build.environment(source)), str(PROGRAMS / "python" / "main.py")]
    except python_build.PythonMissingError as reason:
        raise ClientMissingError(str(reason)) from None


def _node() -> list[str]:
    source = PROGRAMS.parents[1] / "rocketmq_grpc_node"
    try:
        packages = node_build.build(source)
    except node_build.NodeMissingError as reason:
        raise ClientMissingError(str(reason)) from None
    # A program finds packages in the directories above it only.
    program = packages / "beside.js"
    shutil.copy(PROGRAMS / "node" / "main.js", program)
    return ["node", str(program)]


def _java() -> list[str]:
    try:
        classes = java_build.build(PROGRAMS / "grpc_java")
    except java_build.JavaMissingError as reason:
        raise ClientMissingError(str(reason)) from None
    return java(classes, ["-Xmx256m", *QUICK_START], "Program")


def _rust() -> list[str]:
    try:
        return [str(rust_build.build(PROGRAMS.parents[1] / "rocketmq_rust", "operations"))]
    except rust_build.RustMissingError as reason:
        raise ClientMissingError(str(reason)) from None


COMMANDS: Mapping[str, Callable[[], Sequence[str]]] = {
    "python": _python,
    "node": _node,
    "java": _java,
}
"""How each language's client starts."""
ALL_COMMANDS: Mapping[str, Callable[[], Sequence[str]]] = {**COMMANDS, "rust": _rust}
"""The same with the client for Rust, which cannot do most of what scenarios ask for, and takes
minutes to compile.
"""


class Client:
    """A running client of one language."""

    def __init__(self, language: str, process: asyncio.subprocess.Process) -> None:
        self.language = language
        self._process = process
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, language: str, endpoint: str, directory: Path) -> Self:
        """Start the program; `directory` gets its logs.

        Raises:
            ClientMissingError: the client cannot be built here.
        """
        await asyncio.to_thread(directory.mkdir, parents=True)
        command = list(await asyncio.to_thread(ALL_COMMANDS[language]))
        if language == "java":
            command.insert(1, f"-Duser.home={directory}")
        with (directory / "stderr").open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                endpoint,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "HOME": str(directory)},
                cwd=directory,
                limit=_LINE,
            )
        return cls(language, process)

    async def do(self, operation: str, **arguments: object) -> Any:
        """Have the client do something; return the result.

        Raises:
            RefusedError: it failed.
        """
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        line = json.dumps({"n": number, "do": operation, **arguments})
        self._process.stdin.write(line.encode() + b"\n")
        return await future

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            future = self._waiting.pop(answer["n"])
            if future.done():
                continue
            if "error" in answer:
                future.set_exception(RefusedError(**answer["error"]))
            else:
                future.set_result(answer["is"])
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(RuntimeError(f"the client for {self.language} has ended"))

    async def close(self) -> None:
        """End the process."""
        if self._process.returncode is None:
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader
