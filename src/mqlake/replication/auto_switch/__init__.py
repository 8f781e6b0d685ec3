"""Brokers under a controller: roles change, and an in-sync set limits which slave is elected."""
