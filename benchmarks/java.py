"""The Java side: RocketMQ's own store, from Maven Central, behind the classes in java/."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from benchmarks.peer import Peer

SOURCE = Path(__file__).parent / "java"
BUILD = SOURCE.parents[1] / "build" / "benchmarks"
JARS = BUILD / "jars"
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")


class JavaMissingError(Exception):
    """The Java store cannot be measured here; the message is one line that says why."""


def build() -> None:
    """Compile the classes and fetch the jars they need.

    Raises:
        JavaMissingError: no Java compiler, no Maven, or no jars to be had.
    """
    for program, package in (("javac", "openjdk-17-jdk-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise JavaMissingError(f"{program} is not installed (apt-get install {package})")
    command = ["mvn", "-q", "-B", "-f", str(SOURCE / "pom.xml"), "compile"]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={JARS}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = next((s for s in done.stdout.splitlines() if "ERROR" in s), "no reason given")
        raise JavaMissingError(f"mvn could not build {SOURCE.name}/: {reason}")


def rocketmq_version() -> str:
    """Return the version of the store that was built against, read off its jar."""
    (jar,) = JARS.glob("rocketmq-store-*.jar")
    return jar.stem.removeprefix("rocketmq-store-")


def start(log: Path) -> Peer:
    """Start the JVM, with RocketMQ's usual collector and more heap than the store needs."""
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    options = ["-Xms2g", "-Xmx2g", "-XX:+UseG1GC", "-Duser.language=en", *opens]
    # user.home: RocketMQ makes directories there.
    home = f"-Duser.home={log.parent}"
    classes = f"{BUILD / 'classes'}:{JARS}/*"
    return Peer("java", ["java", *options, home, "-cp", classes, "Peer"], log)


def free_port() -> int:
    """Return a port that nothing listens on, for the store's replication service."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
