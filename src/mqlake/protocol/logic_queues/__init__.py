"""Logic queues of static topics: the mapping, and plans that change it (docs/static-topics.md)."""
