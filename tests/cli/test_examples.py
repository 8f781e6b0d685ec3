"""The programs of `examples/` run, and say what is true."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from mqlake.testing import broker
from tests.golden import store
from tests.strict_warnings import strict_environment
from tests.until import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, waits: bool = False) -> list[str]:
    """Run an example; return the lines that it wrote.

    Args:
        waits: whether a consumer begins before its topic exists, and says so.
    """
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        env={**os.environ, **strict_environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = ran.stderr.splitlines()
    if waits:
        errors = [line for line in errors if not line.endswith("as soon as there is a route")]
    assert (ran.returncode, errors) == (0, [])
    return ran.stdout.splitlines()


def test_read_topic() -> None:
    golden = store("rmq5-clean")
    truth = [message for message in golden.messages() if message["topic"] == "TopicA"]
    lines = run("read_topic.py", golden.path, "TopicA")
    assert len(lines) == len(truth)
    seen = [tuple(map(int, line.split()[:2])) for line in lines]
    assert seen == sorted((message["queueId"], message["queueOffset"]) for message in truth)


def test_find_by_key() -> None:
    golden = store("rmq5-clean")
    found = [line.split()[0] for line in run("find_by_key.py", golden.path, "TopicA", "键-3")]
    assert found == [
        message["offsetMsgId"]
        for message in golden.messages()
        if message["topic"] == "TopicA" and "键-3" in (message["keys"] or "").split()
    ]


def test_rebuild_elsewhere(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    *_, last = run("rebuild_elsewhere.py", golden.path, tmp_path / "out")
    queued = sum(message["sysFlag"] & 12 in (0, 8) for message in golden.messages())
    assert last.startswith(f"{queued} queue entries, ")
    assert (tmp_path / "out" / "checkpoint").exists()


def test_send_and_receive() -> None:
    with broker() as running:
        first, *billed = run("send_and_receive.py", running.name_server)
    assert first == "sent 10 orders"
    assert sorted(billed) == [f"billed order {n}: {100 * n}" for n in (1, 3, 5, 7, 9)]


def test_request_reply() -> None:
    with broker() as running:
        lines = run("request_reply.py", running.name_server, waits=True)
    assert lines == ["apple: 0.40", "pear: 0.55", "brick: not for sale"]


def test_celery_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("celery", reason="the example needs Celery: pip install 'mqlake[celery]'")
    worker = ("celery", "-A", "celery_app", "worker", "-P", "solo")
    with broker() as running:
        monkeypatch.setenv("BROKER_URL", f"rocketmq://{running.name_server}/")
        assert run("celery_app.py") == ["sent 4 tasks"]
        assert billed_by(worker, tmp_path / "worker.log") == ["0", "1", "2", "3"]


def test_taskiq_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("taskiq", reason="the example needs taskiq: pip install 'mqlake[taskiq]'")
    worker = ("taskiq", "worker", "taskiq_app:broker", "--workers", "1")
    with broker() as running:
        monkeypatch.setenv("NAME_SERVERS", running.name_server)
        assert run("taskiq_app.py") == ["sent 4 tasks"]
        assert billed_by(worker, tmp_path / "worker.log") == ["0", "1", "2", "3"]


def test_orders_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells print what it shows."""
    notebook = json.loads((EXAMPLES / "orders.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    async def execute() -> None:
        names: dict[str, object] = {}
        for cell in cells:
            code = compile(
                "".join(cell["source"]), "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
            waiting = eval(code, names)
            if waiting is not None:
                await waiting
            shown = [line for output in cell["outputs"] for line in output["text"]]
            assert capsys.readouterr().out == "".join(shown)

    with broker() as running:
        monkeypatch.setenv("NAME_SERVERS", running.name_server)
        asyncio.run(execute())


def billed_by(worker: tuple[str, ...], log: Path) -> list[str]:
    """Return the orders that a worker bills, in their order; it is stopped after four."""
    command = [sys.executable, "-m", *worker]
    with log.open("wb") as output:
        running = subprocess.Popen(command, cwd=EXAMPLES, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + PATIENCE
        while log.read_text().count("billed order ") < 4:
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        running.terminate()
        assert running.wait(PATIENCE) == 0, log.read_text()
    finally:
        running.kill()
    return sorted(re.findall(r"billed order (\d)", log.read_text()))


@pytest.mark.spark
def test_tags_with_spark() -> None:
    golden = store("rmq5-clean")
    lines = run("tags_with_spark.py", golden.path)
    counts = {tag: int(count) for count, tag in (line.split(maxsplit=1) for line in lines)}
    truth = Counter(str(message["properties"].get("TAGS")) for message in golden.messages())
    assert counts == truth


@pytest.mark.spark
def test_demo() -> None:
    lines = run("demo.py")
    answers = [re.search(r"(\d+) of (\d+) equal", line) for line in lines]
    counts = [(found[1], found[2]) for found in answers if found]
    assert counts == [(same, same) for same, _ in counts]
    assert [int(count) for count, _ in counts] == [45, 3, 376, 113, 30]
    assert lines[-1].startswith("✔ Files and answers equal RocketMQ's own.")
    page = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    shown = page.partition("The demo prints")[2].partition("```text\n")[2].partition("```")[0]
    printed = [without_dates(line) for line in lines]
    missing = [
        line
        for line in map(without_dates, shown.splitlines())
        if not any(each.startswith(line) for each in printed)  # The durations come last.
    ]
    assert missing == []
    assert len(shown.splitlines()) > 20


def without_dates(line: str) -> str:
    """Return a line without the times of day, which depend on the time zone."""
    return re.sub(r"\d{4}-\d\d-\d\d [\d:]{8}", "…", line).rstrip()


def test_the_demo_says_what_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import demo

    golden = store("rmq5-clean")
    copy = golden.copy(tmp_path / "copy")
    assert demo.compare_files(golden.path, copy) == 0
    assert demo.compare_answers(copy) == 0
    (copy / "index" / "20261120203016976").write_bytes(b"")
    segment = copy / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[: len(data) // 2] = bytes(len(data) // 2)
    segment.write_bytes(data)
    assert demo.compare_files(golden.path, copy) == 1
    assert demo.compare_answers(copy) > 0
    assert "2 of 3 equal" in capsys.readouterr().out


def test_every_example_is_listed_and_run() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    tested = Path(__file__).read_text() + 'run("orders_service.py"'  # test_orders_service.py
    for path in EXAMPLES.glob("*.py"):
        assert f"]({path.name})" in listed
        assert f'run("{path.name}"' in tested
