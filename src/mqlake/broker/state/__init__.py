"""What a broker knows: its topics, groups, clients, offsets, locks and statistics."""
