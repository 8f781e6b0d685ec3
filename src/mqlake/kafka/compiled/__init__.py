"""The walk over batches and records, compiled by Numba.

The twins in plain Python define what the kernels must do: `batches` -
`mqlake.kafka.batches.walk`, `records` - `mqlake.formats.kafka.record_batch.decode_records`,
`index_entries` - `mqlake.kafka.index.builder`.
"""
