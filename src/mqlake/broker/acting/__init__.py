"""A slave that acts for a master that is gone (RocketMQ's `enableSlaveActingMaster`)."""
