"""Build the Java programs beside real servers: jars from a Maven registry, classes with javac.

A program is a directory of sources with a pom.xml that names the jars; what it is built to stays in
`build/` until a source changes. Any number of processes may ask for the same program at once.
Several are built at a time by one run of Maven and one of javac: each takes seconds to start.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from mqlake.spark.launch import QUICK_START

BUILD = Path(__file__).parents[2] / "build"
COMPILER = Path(__file__).parent / "java_compile" / "Compile.java"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
PROGRAM = "program.jar"
"""What is compiled, and the resources beside the sources: class archives know jars only."""
UNREACHABLE = ("Could not transfer artifact", "Cannot access", "Unknown host")
_POM = "http://maven.apache.org/POM/4.0.0"
ET.register_namespace("", _POM)


class JavaMissingError(Exception):
    """No Java program can be built here; the message is one line that says why."""


class Program(NamedTuple):
    """A program.

    Attributes:
        source: the directory of its sources.
        version: stands for the property `peer.version` of its pom.xml.
    """

    source: Path
    version: str | None = None

    @property
    def name(self) -> str:
        """Of its directory in `build/`."""
        return f"{self.source.name}-{self.version}" if self.version else self.source.name

    @property
    def output(self) -> Path:
        """What it is built to."""
        return BUILD / self.name

    @property
    def jars(self) -> Path:
        """The directory of the jars that its pom.xml names."""
        return self.output / "jars"

    @property
    def classes(self) -> Path:
        """The directory of what is compiled."""
        return self.output / "classes"

    @property
    def sources(self) -> list[Path]:
        """What is compiled; a pom.xml may be all that there is."""
        return sorted(self.source.glob("*.java"))

    @property
    def path(self) -> str:
        """Its class path."""
        return f"{self.output / PROGRAM}:{self.jars}/*"

    @property
    def digest(self) -> str:
        """Of the sources and the pom.xml."""
        digest = hashlib.sha256()
        for path in sorted(self.source.glob("*.*")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()

    @property
    def is_built(self) -> bool:
        """Whether it has been built from these sources."""
        stamp = self.output / _STAMP
        return stamp.exists() and stamp.read_text() == self.digest

    def pom(self) -> ET.Element:
        """Return the pom.xml of a module that copies the jars to their directory."""
        root = ET.parse(self.source / "pom.xml").getroot()
        properties = root.find(f"{{{_POM}}}properties")
        if properties is None:
            properties = ET.SubElement(root, f"{{{_POM}}}properties")
        wanted = {"outputDirectory": str(self.jars), "peer.version": self.version}
        for name, value in wanted.items():
            if value is not None:
                found = properties.find(f"{{{_POM}}}{name}")
                if found is None:
                    found = ET.SubElement(properties, f"{{{_POM}}}{name}")
                found.text = value
        version = root.find(f"{{{_POM}}}version")
        assert version is not None
        version.text = self.name  # the same program of two versions is two modules
        return root

    def pack(self) -> None:
        """Write a jar with all classes, and with what lies beside the sources."""
        program = self.output / PROGRAM
        unfinished = program.with_suffix(".unfinished")
        with zipfile.ZipFile(unfinished, "w") as jar:
            for root in (self.classes, self.source):
                for path in sorted(root.rglob("*")):
                    if path.is_file() and path.suffix != ".java" and path.name != "pom.xml":
                        jar.write(path, path.relative_to(root))
        unfinished.rename(program)


_STAMP = "built"


def build(source: Path, version: str | None = None) -> str:
    """Compile the program in `source` if that has not been done; return its class path.

    `version` stands for the property `peer.version` of its pom.xml.

    Raises:
        JavaMissingError: no Java compiler, no Maven, or no registry to fetch jars from.
        CalledProcessError: Maven or the compiler refused the program.
    """
    program = Program(source, version)
    build_all([program])
    return program.path


def jars(source: Path) -> Path:
    """Fetch the jars that the pom.xml in `source` names; return the directory they are in.

    Raises:
        JavaMissingError, CalledProcessError: as `build`.
    """
    program = Program(source)
    build_all([program])
    return program.jars


def build_all(programs: Iterable[Program]) -> None:
    """Compile those programs for which that has not been done.

    Raises:
        JavaMissingError, CalledProcessError: as `build`; then none of them has been built.
    """
    with ExitStack() as stack:
        missing: list[Program] = []
        # In one order, so that two processes never wait for each other.
        for each in sorted(set(programs), key=lambda program: program.name):
            each.output.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((each.output / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not each.is_built:
                missing.append(each)
            elif not (each.output / PROGRAM).exists():
                each.pack()
        if missing:
            _fetch(missing)
            _compile([each for each in missing if each.sources])
        for each in missing:
            for archive in each.output.glob("*.jsa"):
                archive.unlink()
            each.pack()
            (each.output / _STAMP).write_text(each.digest)


def _fetch(programs: Sequence[Program]) -> None:
    """Copy the jars that the programs need to their directories."""
    if shutil.which("mvn") is None:
        raise JavaMissingError("mvn is not installed (apt-get install maven)")
    with tempfile.TemporaryDirectory() as place:
        for each in programs:
            # An older release of a jar would come before the new one.
            shutil.rmtree(each.jars, ignore_errors=True)
            module = Path(place, each.name)
            module.mkdir()
            ET.ElementTree(each.pom()).write(module / "pom.xml")
        modules = "".join(f"<module>{each.name}</module>" for each in programs)
        pom = Path(place, "pom.xml")
        pom.write_text(
            f'<project xmlns="{_POM}"><modelVersion>4.0.0</modelVersion>'
            "<groupId>mqlake</groupId><artifactId>peers</artifactId><version>1</version>"
            f"<packaging>pom</packaging><modules>{modules}</modules></project>"
        )
        command = ["mvn", "-q", "-B", "-f", str(pom), f"{PLUGIN}:copy-dependencies"]
        quick = os.environ | {"MAVEN_OPTS": " ".join(QUICK_START)}
        done = subprocess.run(
            [*command, "-DincludeScope=runtime"],
            env=quick,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr)
        if any(words in done.stdout for words in UNREACHABLE):
            names = ", ".join(f"{each.source.name}/" for each in programs)
            raise JavaMissingError(f"mvn could not fetch what {names} needs: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)


def _compile(programs: Sequence[Program]) -> None:
    if not programs:
        return
    if shutil.which("javac") is None:
        raise JavaMissingError("javac is not installed (apt-get install default-jdk-headless)")
    compilations: list[str] = []
    for each in programs:
        shutil.rmtree(each.classes, ignore_errors=True)
        path = ":".join(map(str, sorted(each.jars.glob("*.jar"))))
        words = ["-proc:none", "-d", str(each.classes), "-cp", path, *map(str, each.sources)]
        compilations.append("\n".join(words))
    subprocess.run(["java", *QUICK_START, str(COMPILER), *compilations], check=True)
