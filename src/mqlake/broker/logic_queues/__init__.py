"""Logic queues of static topics: their offsets and pulls, translated to queues of this broker."""
