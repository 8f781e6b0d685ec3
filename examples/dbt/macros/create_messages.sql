{% macro create_messages(store) %}
    create table if not exists {{ target.schema }}.messages
    using rocketmq
    options (path '{{ store }}', columns 'topic,queueId,queueOffset,storeTimestamp,tags,body')
{% endmacro %}
