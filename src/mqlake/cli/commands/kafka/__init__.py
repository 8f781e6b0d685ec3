"""The commands of `mqlake kafka`, one module each."""

SUMMARY = "Inspect, verify, dump, look up, re-index and recover Apache Kafka log segments."
