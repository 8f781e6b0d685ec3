"""PULL_MESSAGE, LITE_PULL_MESSAGE: messages of a queue, at once or once there are some.

Upstream: `PullMessageProcessor`, `DefaultPullMessageResultHandler`, `PullRequestHoldService`.
"""
