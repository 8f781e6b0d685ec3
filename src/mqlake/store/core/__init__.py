"""The parts of a live store that need several others: puts, ticks, durability, removal, role."""
