"""Texts of settings mean to mqlake what they mean to Java, also those that mqlake has edited."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import FormatError
from mqlake.store.config.properties_file import edited
from mqlake.store.java_properties import parse, text_of
from tests.store.config.properties_texts import drawn

PROGRAM = Path(__file__).with_name("java_properties") / "Load.java"
COUNT = 4000
MALFORMED = {"malformed": ""}

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        shutil.which("javac") is None,
        reason="javac is not installed (apt-get install default-jdk-headless)",
    ),
]


def loaded(texts: list[str], place: Path) -> list[dict[str, str]]:
    """Return what Java's `Properties` reads of each text."""
    given, answer = place / "texts", place / "answer"
    given.write_bytes("\0".join(texts).encode())
    subprocess.run(["java", str(PROGRAM), str(given), str(answer)], check=True)
    return [
        MALFORMED
        if line == "malformed"
        else {
            _text(name): _text(value)
            for name, _, value in (pair.partition(":") for pair in line.split())
        }
        for line in answer.read_text().splitlines()
    ]


def _text(units: str) -> str:
    return bytes.fromhex(units).decode("utf-16-be", "surrogatepass")


def read(text: str) -> dict[str, str]:
    try:
        return parse(text)
    except FormatError:
        return MALFORMED


def test_java_reads_the_same_settings(tmp_path: Path) -> None:
    random = Random(7659)
    texts = [drawn(random) for _ in range(COUNT)]
    texts += [text_of([(drawn(random), drawn(random))]) for _ in range(COUNT)]
    values = {"regionId": "C:\\users = 中😀\n", "traceOn": "true"}
    texts += [edited(text, BrokerSettings, values) for text in texts[:COUNT]]
    found = loaded(texts, tmp_path)
    for text, java in zip(texts, found, strict=True):
        assert read(text) == java, text
    for java in found[2 * COUNT :]:
        if java != MALFORMED:
            assert (java["regionId"], java["traceOn"]) == ("C:\\users = 中😀", "true")
