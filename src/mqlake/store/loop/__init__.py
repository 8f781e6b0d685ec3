"""The parts of a live store that wait: for the tasks of one event loop."""
