"""Crashes and failing disks: what they may leave of a store's directory, and what must hold then.

    trace.py           the steps that are done to a disk
    disk.py, clock.py  a disk in memory that writes them down, and a clock that stands still
    snapshot.py        its content at one moment
    pending.py         what of it is certain after some steps, and what a power cut may take back
    images.py          what a crash may leave
    expectation.py     what the store said that must be found again
    simulator.py       a workload crashed at every step, and its recovery crashed too
    toy.py             a small store with planted faults, to try the simulator itself

    session.py         a live store at work, noting what it promises
    workloads/         scripts for it, and scripts that are drawn
    log_walk.py        a store's files read byte by byte
    oracles.py         what must hold of a store that was opened after a crash

    faulty.py          a disk that refuses an operation, or all from there on
    faults.py          workloads on such disks
    kill.py, child.py  real processes that are killed

    fleet.py, long_runs.py, page.py   long runs, and their sections of docs/reliability.md

`python -m tests.crash --nightly` looks at a million images; `--workload W --image N --seed S` at
one of them again.
"""
