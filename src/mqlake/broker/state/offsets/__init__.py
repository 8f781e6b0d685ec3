"""How far groups may go, where they continue, and how many offsets they may have."""
