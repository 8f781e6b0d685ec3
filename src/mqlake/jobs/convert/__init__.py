"""Convert stores of RocketMQ to log directories of Kafka, and the reverse."""
