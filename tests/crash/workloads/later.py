"""Messages that reach their queue later: delayed ones, and those of transactions."""

from __future__ import annotations

from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload

GROUP = "producers"


@workload()
def delayed(s: Session) -> None:
    for level in (1, 1, 2):
        s.put(delay_level=level)
    s.tick()
    s.pass_time(1_100)
    s.pass_time(5_000)
    s.checkpoint()


@workload(SYNC)
def delayed_synced(s: Session) -> None:
    s.put(delay_level=1)
    s.put(delay_level=1)
    s.pass_time(2_000)
    s.pass_time(2_000)
    s.pass_time(11_000)


@workload()
def delayed_and_killed(s: Session) -> None:
    s.put(delay_level=1)
    s.put(delay_level=2)
    s.pass_time(1_100)
    s.kill()
    s.pass_time(5_000)
    s.kill()
    s.pass_time(11_000)
    s.stop()


@workload()
def delayed_and_stopped(s: Session) -> None:
    s.put(delay_level=1)
    s.pass_time(1_100)
    s.restart()
    s.pass_time(1_100)
    s.put(delay_level=1)
    s.restart()
    s.pass_time(1_100)


def _at(s: Session, seconds: int) -> None:
    s.put(properties={"TIMER_DELAY_SEC": str(seconds)})


@workload()
def timers(s: Session) -> None:
    for seconds in (3, 1, 60, 1):
        _at(s, seconds)
    s.flush()
    s.pass_time(2_100)
    s.pass_time(1_100)
    _at(s, 2)
    s.flush()
    s.pass_time(2_000)
    s.pass_time(1_100)
    s.checkpoint()


@workload(SYNC)
def timers_synced(s: Session) -> None:
    _at(s, 1)
    _at(s, 3)
    s.pass_time(2_000)
    s.pass_time(2_000)
    s.pass_time(1_100)
    s.pass_time(1_100)


@workload(mapped_file_size_timer_log=1024)
def timers_stopped(s: Session) -> None:
    """A clean stop leaves a timer log for RocketMQ; the next start takes it away."""
    _at(s, 1)
    _at(s, 60)
    s.pass_time(2_100)
    s.pass_time(1_100)
    s.restart()
    s.pass_time(1_100)
    _at(s, 1)
    s.restart()
    s.pass_time(61_000)


@workload(timer_roll_window_slot=4, timer_precision_ms=500)
def timers_rolled_and_killed(s: Session) -> None:
    """What waits for long is put again."""
    _at(s, 3)
    _at(s, 1)
    s.pass_time(2_600)
    s.kill()
    s.pass_time(600)
    s.kill()
    s.pass_time(2_600)
    s.pass_time(1_100)


def _prepare(s: Session) -> tuple[int, int]:
    (result,) = s.send(lambda: [s.store.transactions.prepare(s.message(), GROUP)])
    return result.physical_offset, result.queue_offset


def _end(s: Session, half: tuple[int, int], *, commit: bool) -> None:
    s.do(lambda: s.store.transactions.end(*half, GROUP, commit=commit))
    if not s.store.watermarks.confirms_at_append:
        s.flush()


@workload()
def transactions(s: Session) -> None:
    first, second = _prepare(s), _prepare(s)
    s.tick()
    _end(s, first, commit=True)
    _end(s, second, commit=False)
    s.tick()
    s.checkpoint()


@workload(SYNC)
def transactions_synced(s: Session) -> None:
    first = _prepare(s)
    s.put(topic=TOPIC)
    _end(s, first, commit=True)
    _end(s, _prepare(s), commit=False)


@workload()
def transactions_checked(s: Session) -> None:
    """A producer that does not answer is asked: its half message is put again."""
    s.store.transactions.ask_with(lambda _: None)
    half = _prepare(s)
    s.pass_time(31_000)
    s.pass_time(31_000)
    _end(s, half, commit=True)
    s.pass_time(31_000)
    s.restart()
    s.pass_time(31_000)


@workload()
def transactions_killed(s: Session) -> None:
    first, second = _prepare(s), _prepare(s)
    s.tick()
    _end(s, first, commit=True)
    s.kill()
    _end(s, second, commit=True)
    s.tick()
    s.kill()
    s.flush()


@workload(flush_interval_commit_log=500, flush_commit_log_least_pages=0)
def by_the_clock(s: Session) -> None:
    """Flushes, checkpoints and config files in their intervals."""
    for number in range(4):
        s.put(900)
        s.consume(number + 1)
        s.pass_time(700)
    s.pass_time(61_000)
    s.put()
    s.pass_time(700)


@workload(flush_consume_queue_thorough_interval=1000, mapped_file_size_commit_log=1024)
def by_the_clock_over_rolls(s: Session) -> None:
    for _ in range(5):
        s.put(600)
        s.pass_time(10_500)
