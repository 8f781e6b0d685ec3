"""What a process that reads messages says while it compiles kernels."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit
from numba.core import event

from mqlake import pace
from mqlake.query.reading.compilation import KIND, CompilationReports, listener_for
from tests.until import wait_until


def test_a_kernel_is_reported_again_and_again_while_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "PACE", 0.01)
    lines: list[str] = []
    reports = CompilationReports(lines.append)
    reports.begin("walk")
    reports.begin("part_of_walk")
    reports.end()
    wait_until(lambda: len(lines) >= 2)
    reports.end()
    assert all(line.startswith("compiling kernel 1 (walk), once: ") for line in lines)

    lines.clear()
    reports.begin("values")
    wait_until(lambda: any(line.startswith("compiling kernel 2 (values)") for line in lines))
    reports.end()


def test_the_end_of_what_nobody_saw_begin_is_no_fault() -> None:
    reports = CompilationReports(lambda _: None)
    reports.end()
    reports.begin("walk")
    reports.end()


class _Noted(CompilationReports):
    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.names: list[str] = []

    def begin(self, name: str) -> None:
        self.names.append(name)

    def end(self) -> None:
        self.names.append("end")


@pytest.mark.parametrize(
    ("module", "names"), [("mqlake.dispatch.compiled.x", ["kernel", "end"]), ("users", [])]
)
def test_only_our_kernels_are_reported(module: str, names: list[str]) -> None:
    def kernel(number: Any) -> Any:
        return number + 1

    kernel.__module__ = module
    reports = _Noted()
    with event.install_listener(KIND, listener_for(reports)):
        assert njit(kernel)(1) == 2
        assert njit(kernel)(1) == 2
    assert reports.names[:2] == names
