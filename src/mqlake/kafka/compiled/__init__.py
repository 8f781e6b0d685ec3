"""The walk over batches and records, compiled by Numba; plain Python says what it means.

Their twins: `batches` - `mqlake.kafka.batch_walk`, `records` - `mqlake.kafka.record_walk`,
`index_entries` - `mqlake.kafka.index_builder`.
"""
