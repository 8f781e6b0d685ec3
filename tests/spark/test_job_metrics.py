"""What batch jobs tell monitoring systems."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqlake.client import ClientMetrics
from mqlake.jobs.archive.check import check
from mqlake.jobs.archive.job import archive
from mqlake.jobs.convert.to_kafka import convert_to_kafka
from mqlake.jobs.export.job import export
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild.job import rebuild
from mqlake.jobs.verify.job import verify
from mqlake.metrics.metric import MetricFamily
from mqlake.spark import JobMetrics, job_metrics
from mqlake.storage.object_target import open_target
from tests.golden import store

ALL = {
    each.prometheus_name for each in vars(job_metrics).values() if isinstance(each, MetricFamily)
}


def values(jobs: JobMetrics) -> dict[tuple[str, str], float]:
    """Return the values by name and job."""
    return {
        (each.name, each.labels["job"]): each.value
        for family in text_string_to_metric_families(ClientMetrics(jobs).text().decode())
        for each in family.samples
    }


def test_every_job_is_counted(tmp_path: Path) -> None:
    """The rows and bytes are those of the job's own report."""
    path, engine, jobs = store("rmq5-clean").path, LocalEngine(1), JobMetrics()
    with jobs.measured("verify") as done:
        done.report(verified := verify(path, engine))
    with jobs.measured("rebuild") as done:
        done.report(rebuilt := rebuild(path, engine, out=tmp_path / "rebuilt"))
    with jobs.measured("export") as done:
        done.report(exported := export(path, engine, out=tmp_path / "parquet"))
    with jobs.measured("convert") as done:
        done.report(converted := convert_to_kafka(path, engine, out=tmp_path / "kafka", topics=[]))
    target = open_target(str(tmp_path / "archive"), {})
    with jobs.measured("archive") as done:
        done.report(archived := archive(path, target, None))
        done.report(checked := check(target.directory, engine))

    found = values(jobs)
    expected = {
        "verify": (verified.records, verified.bytes_scanned, 0),
        "rebuild": (rebuilt.records, rebuilt.bytes_scanned, 0),
        "export": (exported.messages, exported.bytes_scanned, exported.bytes_written),
        "convert": (converted.records, 0, converted.bytes_written),
        "archive": (archived.records, checked.bytes_read, archived.bytes_copied),
    }
    for job, (rows, read, written) in expected.items():
        assert rows
        assert found["mqlake_job_rows_total", job] == rows
        assert found["mqlake_job_read_bytes_total", job] == read
        assert found["mqlake_job_written_bytes_total", job] == written
        assert found["mqlake_job_runs_total", job] == found["mqlake_job_time_seconds_count", job]
        assert found["mqlake_job_runs_total", job] == 1
        assert found["mqlake_job_failures_total", job] == found["mqlake_job_running", job] == 0


def test_failures_and_runs_that_have_not_ended() -> None:
    jobs = JobMetrics()

    def work() -> None:
        with jobs.measured("report") as done:
            done.add(rows=3, read=40)
            found = values(jobs)
            assert found["mqlake_job_running", "report"] == 1
            assert found["mqlake_job_runs_total", "report"] == 0
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        work()
    found = values(jobs)
    assert found["mqlake_job_running", "report"] == 0
    assert found["mqlake_job_runs_total", "report"] == 1
    assert found["mqlake_job_failures_total", "report"] == 1
    assert found["mqlake_job_rows_total", "report"] == 3
    assert found["mqlake_job_read_bytes_total", "report"] == 40


def test_every_metric_has_a_sample() -> None:
    jobs = JobMetrics()
    with jobs.measured("report"):
        pass
    assert {sample.metric.prometheus_name for sample in jobs.samples()} == ALL
