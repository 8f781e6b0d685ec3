"""The comparison: each workload runs once without a failure, and once for each operation that fails
once. Then both runs are compared, step by step.

`run` has the rules, `disk_world` and `network_world` the failures; the other modules are workloads.
"""
