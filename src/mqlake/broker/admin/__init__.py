"""Requests of administrators to a broker (upstream: `AdminBrokerProcessor`)."""
