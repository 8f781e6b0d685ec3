"""What `make bench` runs: mqlake measured beside the real Java RocketMQ store, in one run."""
