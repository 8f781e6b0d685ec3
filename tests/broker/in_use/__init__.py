"""An administrator changes things while clients use them.

A run is drawn from a seed, in simulated time. Producers, consumers and an administrator work at the
same time on a few topics and groups; the broker is also stopped, and killed. Whatever happens, an
acknowledged message of a topic that lives is delivered, and none of a deleted one.
"""
