"""RocketMQ's gRPC clients behind a proxy: what they are to do, and the processes that do it.

`rocketmq_grpc_python/`, `rocketmq_grpc_node/` and `rocketmq_grpc_java/` hold a program each, with
the same features.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.spark.launch import QUICK_START
from tests.peer import java_build, node_build, python_build
from tests.peer.java_start import java
from tests.peer.mqlake_proxy import MqlakeProxy
from tests.peer.rocketmq_cluster import QUICK
from tests.peer.rocketmq_proxy import Proxy

TYPES = {
    "send": "NORMAL",
    "simple": "NORMAL",
    "delay": "DELAY",
    "fifo": "FIFO",
    "transaction": "TRANSACTION",
}
"""What messages the topic of each feature has."""

PATIENCE = 240
"""Seconds."""

Features = dict[str, dict[str, Any]]


class ClientsMissingError(Exception):
    """No client of this language can run here; the message is one line that says why."""


def _python() -> list[str]:
    source = Path(__file__).parent / "rocketmq_grpc_python"
    try:
        return [str(python_build.environment(source)), str(source / "main.py")]
    except python_build.PythonMissingError as reason:
        raise ClientsMissingError(str(reason)) from None


def _node() -> list[str]:
    try:
        directory = node_build.build(Path(__file__).parent / "rocketmq_grpc_node")
    except node_build.NodeMissingError as reason:
        raise ClientsMissingError(str(reason)) from None
    return ["node", str(directory / "main.js")]


def _java() -> list[str]:
    try:
        classes = java_build.build(Path(__file__).parent / "rocketmq_grpc_java")
    except java_build.JavaMissingError as reason:
        raise ClientsMissingError(str(reason)) from None
    return java(classes, ["-Xmx256m", *QUICK_START], "Features")


COMMANDS: dict[str, Callable[[], list[str]]] = {"python": _python, "node": _node, "java": _java}


def run(
    names: str, directory: Path, *, is_mqlake: bool = False
) -> dict[str, Features | ClientsMissingError]:
    """Run all features of all languages at a time, behind a proxy; return what happened.

    Args:
        names: the address of the name server of a cluster.
        directory: for what they write.
        is_mqlake: behind mqlake's proxy instead of RocketMQ's.

    Raises:
        JavaMissingError: there is no proxy.
    """
    place = directory / "proxy"
    proxy = MqlakeProxy(place, names) if is_mqlake else Proxy(place, names, QUICK)
    try:
        asyncio.run(_prepare(names))

        def attempt(language: str) -> Features | ClientsMissingError:
            try:
                return _happened(language, proxy.endpoint, directory / language)
            except ClientsMissingError as reason:
                return reason

        with ThreadPoolExecutor(len(COMMANDS)) as threads:
            return dict(zip(COMMANDS, threads.map(attempt, COMMANDS), strict=True))
    finally:
        proxy.close()


def topic_of(language: str, feature: str) -> str:
    """Return the name of a feature's topic; that of its group begins with `G_`."""
    return f"{language}_{feature}"


async def _prepare(names: str) -> None:
    """Create the topics, and of the groups only those that are consumed in order."""
    async with Admin(names) as admin:
        for language in COMMANDS:
            for feature, kind in TYPES.items():
                name = topic_of(language, feature)
                topic = Topic(topic_name=name, read_queue_nums=2, write_queue_nums=2)
                await topics.update(admin, topic, None, "broker-a", f"+message.type={kind}")
            group = SubscriptionGroup(
                group_name=f"G_{topic_of(language, 'fifo')}", consume_message_orderly=True
            )
            await groups.update(admin, group, None, "broker-a")


def _happened(language: str, endpoint: str, directory: Path) -> Features:
    directory.mkdir()
    command: Sequence[str] = COMMANDS[language]()
    if language == "java":
        command = [command[0], f"-Duser.home={directory}", *command[1:]]
    with (directory / "stderr").open("w") as errors:
        done = subprocess.run(
            [*command, endpoint, language],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "HOME": str(directory)},
            cwd=directory,
            check=False,
        )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{language}: {(directory / 'stderr').read_text()[-2000:]}")
    return json.loads(lines[-1])
