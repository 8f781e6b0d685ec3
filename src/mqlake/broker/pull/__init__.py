"""PULL_MESSAGE, LITE_PULL_MESSAGE: return messages of a queue, at once or when some arrive.

Upstream: `PullMessageProcessor`, `DefaultPullMessageResultHandler`, `PullRequestHoldService`.
"""
