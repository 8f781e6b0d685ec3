"""Tasks, jobs and results travel between processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mqlake.jobs.export import export
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from tests.golden import store
from tests.jobs.model import read_index_files, read_queue_files


class PicklingEngine(LocalEngine):
    """An engine that hands everything over as bytes."""

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], title: str) -> list[Any]:
        def remote(data: bytes) -> bytes:
            function, job = pickle.loads(data)
            return pickle.dumps(function(job))

        sent = [pickle.dumps((task, job)) for job in jobs]
        return [pickle.loads(result) for result in super().run(remote, sent, title)]


def test_every_job_and_result_can_be_pickled(tmp_path: Path) -> None:
    path = store("rmq5-torn.variant-flip5").path
    engine = PicklingEngine(2)

    rebuilt = rebuild(path, engine, out=tmp_path / "out", tasks=5)
    verified = verify(path, engine, tasks=5)
    exported = export(path, engine, out=tmp_path / "messages", tasks=5)

    rebuild(path, LocalEngine(1), out=tmp_path / "same")
    assert read_queue_files(tmp_path / "same") == read_queue_files(tmp_path / "out")
    assert read_index_files(tmp_path / "same") == read_index_files(tmp_path / "out")
    assert [rebuilt.records, verified.records, exported.messages] == [3199] * 3
