"""The clients of the service: their settings, their Telemetry streams, their end."""
