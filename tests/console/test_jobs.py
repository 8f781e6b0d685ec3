from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.console.jobs import BackgroundJob, BackgroundJobs, JobState
from mqlake.errors import JobError
from mqlake.storage.clock import SystemClock
from tests.golden import store
from tests.until import until, wait_until


def verify(jobs: BackgroundJobs, path: Path) -> BackgroundJob:
    return jobs.start("verify", str(path), ["verify", str(path), "--engine", "local"])


def golden() -> Path:
    return store("rmq5-clean").path


def test_a_job_has_the_result_of_its_command() -> None:
    async def run() -> None:
        jobs = BackgroundJobs()
        job = verify(jobs, golden())
        assert jobs.running is job
        await jobs.wait()
        assert (job.state, job.error) == (JobState.DONE, None)
        assert job.result["ok"] is True
        assert job.result["store"] == str(golden())
        assert job.total > 0
        assert jobs.running is None
        assert jobs.last("verify", str(golden())) is job

    asyncio.run(run())


def test_only_one_job_runs_and_it_can_be_cancelled() -> None:
    async def run() -> None:
        jobs = BackgroundJobs()
        job = verify(jobs, golden())
        with pytest.raises(JobError, match="is running"):
            verify(jobs, golden())
        jobs.cancel(job.number)
        assert jobs.running is job, "its process has not ended yet"
        await jobs.wait()
        assert job.state is JobState.CANCELLED
        assert job.result is None
        with pytest.raises(JobError, match="not running"):
            jobs.cancel(job.number)
        second = verify(jobs, golden())
        await jobs.close()
        assert second.state is JobState.CANCELLED

    asyncio.run(run())


def test_a_cancelled_job_leaves_no_process() -> None:
    async def run() -> None:
        jobs = BackgroundJobs()
        job = verify(jobs, golden())
        await until(lambda: jobs.process_id is not None)
        process = jobs.process_id
        assert process is not None
        jobs.cancel(job.number)
        await jobs.wait()
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)

    asyncio.run(run())


def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        jobs = BackgroundJobs(SystemClock())
        job = verify(jobs, tmp_path / "nothing")
        await jobs.wait()
        assert job.state is JobState.FAILED
        assert job.error is not None
        assert "nothing" in job.error

    asyncio.run(run())


def test_progress_is_read_from_lines_and_everything_else_is_kept() -> None:
    job = BackgroundJob(1, "verify", "s", (), 0)
    job.read_line("records and their entries: 3 of 12")
    assert (job.step, job.done, job.total, job.percent) == ("records and their entries", 3, 12, 25)
    job.read_line("x: 1 of 99999999999999999999")
    assert job.done == 3
    assert list(job.lines) == ["x: 1 of 99999999999999999999"]


def test_a_process_ends_with_its_parent() -> None:
    # The parent starts a child that would run for ever, and is killed.
    child = (
        "import os; from mqlake.console.bound_process import end_with_parent;"
        " end_with_parent(os.getppid()); input()"
    )
    parent = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)\n"
        "print(p.pid, flush=True)\n"
        "input()\n"
    )
    command = [sys.executable, "-c", parent]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    number = int(process.stdout.readline())
    process.kill()
    process.communicate()

    def has_ended() -> bool:
        state = Path(f"/proc/{number}/stat")
        return not state.exists() or state.read_text().split()[2] == "Z"

    wait_until(has_ended)
