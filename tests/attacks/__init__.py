"""Attacks on a broker: clients that ask for too much, and what the others notice of it.

Each test runs a real broker in a process of its own (`broker_process`), attacks it, and checks
with `Toll.check` that the event loop was never held up, that memory stayed within bounds, and that
a well-behaved client (`honest_client`) was served all the time.
"""
