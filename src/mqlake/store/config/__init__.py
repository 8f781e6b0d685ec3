"""The tables in `config/`: topics, groups, offsets."""
