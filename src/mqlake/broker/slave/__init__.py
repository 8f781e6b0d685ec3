"""The tables that slaves copy: a slave requests them, and its master answers."""
