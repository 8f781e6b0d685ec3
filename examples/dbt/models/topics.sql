select
    topic,
    count(*) as messages,
    max(storeTimestamp) as last_stored
from {{ source('rocketmq', 'messages') }}
group by topic
