"""The source and the sink "rocketmq" on running clusters."""
