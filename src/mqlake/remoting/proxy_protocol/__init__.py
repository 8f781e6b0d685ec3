"""The header with which a proxy names the client of a connection (HAProxy's PROXY protocol)."""
