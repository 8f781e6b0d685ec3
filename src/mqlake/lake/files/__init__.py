"""The data files of lake tables: write, merge, and the columns in them."""
