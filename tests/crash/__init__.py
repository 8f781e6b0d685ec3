"""Crashes: what a crash may leave of a store's directory, everywhere, and what must hold then.

    trace.py        the steps that are done to a disk
    disk.py         a disk in memory that writes them down
    snapshot.py     its content at one moment
    pending.py      what of it is certain after some steps, and what a power cut may take back
    images.py       what a crash may leave
    expectation.py  what the store said that must be found again
    simulator.py    a workload crashed at every step, and its recovery crashed too
    toy.py          a small store with planted faults, to try the simulator itself

`python -m tests.crash --nightly` looks at a million images; `--workload W --image N --seed S` at
one of them again.
"""
