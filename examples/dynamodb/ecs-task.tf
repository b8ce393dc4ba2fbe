# The environment of a task whose DsqlPool shares the limit and the rate of its cluster with all others.

locals {
  environment = [
    # Reservoir
    { name = "DSQL_RESERVOIR_ENABLED", value = "true" },
    { name = "DSQL_RESERVOIR_TARGET_READY", value = "50" },
    { name = "DSQL_RESERVOIR_LOW_WATERMARK", value = "50" },
    { name = "DSQL_RESERVOIR_BASE_LIFETIME", value = "11m" },
    { name = "DSQL_RESERVOIR_LIFETIME_JITTER", value = "2m" },
    { name = "DSQL_RESERVOIR_GUARD_WINDOW", value = "45s" },

    # One limit for all tasks
    { name = "DSQL_DISTRIBUTED_CONN_LEASE_ENABLED", value = "true" },
    { name = "DSQL_DISTRIBUTED_CONN_LEASE_TABLE", value = aws_dynamodb_table.connections.name },
    { name = "DSQL_DISTRIBUTED_CONN_LIMIT", value = "10000" },

    # One rate for all tasks
    { name = "DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED", value = "true" },
    { name = "DSQL_DISTRIBUTED_RATE_LIMITER_TABLE", value = aws_dynamodb_table.connections.name },
    { name = "DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT", value = "100" },
  ]
}
