"""Options that tables of a catalog keep, and the tables of options in the documentation."""
