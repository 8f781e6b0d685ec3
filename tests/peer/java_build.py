"""Build the Java programs beside real servers: jars from a Maven registry, classes with javac.

A program is a directory of sources with a pom.xml that names the jars; what it is built to stays in
`build/` until a source changes. Any number of processes may ask for the same program at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from mqlake.spark.launch import QUICK_START

BUILD = Path(__file__).parents[2] / "build"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
PROGRAM = "program.jar"
"""What is compiled, and the resources beside the sources: class archives know jars only."""
UNREACHABLE = ("Could not transfer artifact", "Cannot access", "Unknown host")


class JavaMissingError(Exception):
    """No Java program can be built here; the message is one line that says why."""


def build(source: Path, version: str | None = None) -> str:
    """Compile the program in `source` if that has not been done; return its class path.

    `version` stands for the property `peer.version` of its pom.xml.

    Raises:
        JavaMissingError: no Java compiler, no Maven, or no registry to fetch jars from.
        CalledProcessError: Maven or the compiler refused the program.
    """
    output = BUILD / (f"{source.name}-{version}" if version else source.name)
    libraries, classes, stamp = output / "jars", output / "classes", output / "built"
    program = output / PROGRAM
    output.mkdir(parents=True, exist_ok=True)
    with (output / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = _digest(source)
        if not stamp.exists() or stamp.read_text() != digest:
            _fetch(source / "pom.xml", libraries, version)
            _compile(source, libraries, classes)
            for outdated in (program, *output.glob("*.jsa")):
                outdated.unlink(missing_ok=True)
            stamp.write_text(digest)
        if not program.exists():
            _pack(source, classes, program)
    return f"{program}:{libraries}/*"


def jars(source: Path) -> Path:
    """Fetch the jars that the pom.xml in `source` names; return the directory they are in.

    Raises:
        JavaMissingError, CalledProcessError: as `build`.
    """
    build(source)
    return BUILD / source.name / "jars"


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(source.glob("*.*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _pack(source: Path, classes: Path, program: Path) -> None:
    """Write a jar with all classes, and with what lies beside the sources."""
    unfinished = program.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w") as jar:
        for root in (classes, source):
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.suffix != ".java" and path.name != "pom.xml":
                    jar.write(path, path.relative_to(root))
    unfinished.rename(program)


def _fetch(pom: Path, jars: Path, version: str | None) -> None:
    if shutil.which("mvn") is None:
        raise JavaMissingError("mvn is not installed (apt-get install maven)")
    shutil.rmtree(
        jars, ignore_errors=True
    )  # an older release of a jar would come before the new one
    command = ["mvn", "-q", "-B", "-f", str(pom), f"{PLUGIN}:copy-dependencies"]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    if version:
        options.append(f"-Dpeer.version={version}")
    quick = os.environ | {"MAVEN_OPTS": " ".join(QUICK_START)}
    done = subprocess.run(
        [*command, *options], env=quick, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr)
        if any(words in done.stdout for words in UNREACHABLE):
            raise JavaMissingError(f"mvn could not fetch what {pom.parent.name}/ needs: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)


def _compile(source: Path, jars: Path, classes: Path) -> None:
    shutil.rmtree(classes, ignore_errors=True)
    sources = sorted(map(str, source.glob("*.java")))
    if not sources:
        return
    if shutil.which("javac") is None:
        raise JavaMissingError("javac is not installed (apt-get install default-jdk-headless)")
    quick = [f"-J{option}" for option in QUICK_START]
    options = ["-proc:none", "-d", str(classes), "-cp", f"{jars}/*"]
    subprocess.run(["javac", *quick, *options, *sources], check=True)
