"""The two directions of one connection, and the transport below them."""
