"""Follow a store into a lake table, or bring its derived files up to date (docs/follow.md).

`follow` takes `FollowOptions`, `dispatch` a `StoreQuery`. Both run until they are stopped or, with
the option `once`, until they have caught up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.lake.follow.accounting import CheckReport as CheckReport
    from mqlake.lake.follow.accounting import check as check
    from mqlake.lake.follow.letter_replay import ReplayReport as ReplayReport
    from mqlake.lake.options import FollowOptions as FollowOptions
    from mqlake.lake.options import Format as Format
    from mqlake.lake.options import StoreQuery as StoreQuery
    from mqlake.spark.follow.derived_files import DispatchReport as DispatchReport
    from mqlake.spark.follow.derived_files import dispatch as dispatch
    from mqlake.spark.follow.job import FollowReport as FollowReport
    from mqlake.spark.follow.job import follow as follow
    from mqlake.spark.follow.replaying import replay as replay
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "CheckReport": "mqlake.lake.follow.accounting",
            "check": "mqlake.lake.follow.accounting",
            "DispatchReport": "derived_files",
            "dispatch": "derived_files",
            "FollowReport": "job",
            "follow": "job",
            "FollowOptions": "mqlake.lake.options",
            "Format": "mqlake.lake.options",
            "StoreQuery": "mqlake.lake.options",
            "ReplayReport": "mqlake.lake.follow.letter_replay",
            "replay": "replaying",
        },
    )
