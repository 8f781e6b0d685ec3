"""The producers and consumers that are connected, by group."""
