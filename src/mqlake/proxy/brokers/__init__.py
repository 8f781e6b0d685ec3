"""How the service asks brokers: in its own process, or over connections."""
