"""What those who look after a broker ask of it (upstream: `AdminBrokerProcessor`)."""
