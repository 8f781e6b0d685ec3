"""What a slave does otherwise: it has the tables of its master, and refuses what is a master's."""
