"""TLS in the settings of servers: RocketMQ's names, and its file `tls.properties`."""
