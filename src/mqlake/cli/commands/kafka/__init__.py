"""The commands of `mqlake kafka`, one module each."""

SUMMARY = "Read, verify, dump, look up, recover and index Apache Kafka log segments."
