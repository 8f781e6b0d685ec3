"""Clean stops, kills and starts."""

from __future__ import annotations

from tests.crash.session import Session
from tests.crash.store_workload import SYNC, workload


@workload()
def nothing(s: Session) -> None:
    """A store that was opened and never used."""
    s.restart()


@workload()
def stop(s: Session) -> None:
    s.put()
    s.put(900)
    s.stop()


@workload()
def restart(s: Session) -> None:
    for _ in range(2):
        s.put()
        s.put(1500)
        s.tick()
        s.restart()
    s.put()
    s.tick()


@workload(SYNC)
def restart_synced(s: Session) -> None:
    s.put(1500)
    s.restart()
    s.put(2500)
    s.restart()


@workload()
def stop_before_the_tick(s: Session) -> None:
    for _ in range(4):
        s.put(900)
    s.stop()


@workload()
def kill(s: Session) -> None:
    """What was in the page cache only is there for the next process, and not yet on the disk."""
    s.put()
    s.put(900)
    s.kill()
    s.put()
    s.tick()
    s.kill()
    s.flush()


@workload(SYNC)
def kill_synced(s: Session) -> None:
    s.put()
    s.do(lambda: s.store.puts.put(s.message(900)))
    s.kill()
    s.put()


@workload()
def kill_with_a_file_ahead(s: Session) -> None:
    """The next file was made, and nothing is in it yet."""
    s.put(2500)
    s.tick()
    s.kill()
    s.put(2500)
    s.tick()
    s.kill()
    s.put(100)
    s.stop()


@workload()
def kill_after_checkpoint(s: Session) -> None:
    for _ in range(3):
        s.put(700)
        s.tick()
    s.checkpoint()
    s.put(700)
    s.tick()
    s.kill()
    s.put(700)
    s.checkpoint()


@workload(mapped_file_size_commit_log=1024, mapped_file_size_consume_queue=40, max_index_num=4)
def kill_again_and_again(s: Session) -> None:
    for _ in range(4):
        s.put(500)
        s.clock.forward(3)
        s.tick()
        s.kill()
    s.stop()


@workload()
def restart_with_other_sizes(s: Session) -> None:
    """A store keeps the sizes of its files, whatever the settings say."""
    s.put(1000)
    s.stop()
    s.settings = _larger(s)
    s.start()
    for _ in range(4):
        s.put(1000)
    s.stop()


def _larger(s: Session):
    import msgspec

    return msgspec.structs.replace(s.settings, mapped_file_size_commit_log=8192)


@workload(mapped_file_size_consume_queue=40)
def queue_lost(s: Session) -> None:
    """Somebody removes a queue of a store that is stopped: it is derived from the log again."""
    for number in range(10):
        s.put(queue_id=number % 2)
    s.stop()
    s.lose("consumequeue/orders/0")
    _start_and_die(s)


@workload(SYNC, mapped_file_size_consume_queue=400)
def queues_lost(s: Session) -> None:
    for number in range(60):
        s.put(queue_id=number % 2)
    s.disk.abandon()
    s.lose("consumequeue/orders/1")
    s.lose("consumequeue/orders/0")
    s.start()
    s.put(queue_id=1)
    s.kill()
    s.put(queue_id=0)


@workload(max_hash_slot_num=8)
def index_lost(s: Session) -> None:
    """Somebody removes the index of a store that is stopped: it is made from the log again."""
    _stop_with_index(s)
    s.lose("index")
    _start_and_die(s)


@workload(max_hash_slot_num=8)
def rocketmq_stopped(s: Session) -> None:
    """The last one that had the store was RocketMQ, which leaves no resume point."""
    _stop_with_index(s)
    s.hand_over()
    _start_and_die(s)


@workload(mapped_file_size_consume_queue=40)
def rocketmq_lost_queue_file(s: Session) -> None:
    """A file in the middle of a queue is gone, and no resume point tells how far queues were."""
    for number in range(12):
        s.put(queue_id=number % 2)
    s.stop()
    s.lose(f"consumequeue/orders/0/{40:020d}")
    s.hand_over()
    _start_and_die(s)


@workload(max_hash_slot_num=8)
def rocketmq_lost_index(s: Session) -> None:
    _stop_with_index(s)
    s.lose("index")
    s.hand_over()
    _start_and_die(s)


def _stop_with_index(s: Session) -> None:
    """Stop a store that has several full index files."""
    for _ in range(30):
        s.put()
        s.clock.forward(10)
    s.stop()


def _start_and_die(s: Session) -> None:
    """Start what was left, and once more after a kill."""
    s.start()
    s.put()
    s.kill()
    s.put()
    s.tick()
