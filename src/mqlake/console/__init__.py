"""A web console: see and change a cluster, and the stores under it (docs/console.md).

`app.create_app` makes the ASGI application, `server.ConsoleServer` serves it. Pages are rendered on
the server; a small script refreshes parts of them. Data comes from the cluster through
`mqlake.admin`, so brokers may be mqlake's or RocketMQ's.
"""
