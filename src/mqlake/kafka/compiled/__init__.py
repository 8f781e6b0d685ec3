"""The walk over batches and records, compiled by Numba; plain Python says what it means.

Their twins: `batches` - `mqlake.kafka.batches.walk`, `records` -
`mqlake.formats.kafka.record_batch.decode_records`, `index_entries` - `mqlake.kafka.index.builder`.
"""
