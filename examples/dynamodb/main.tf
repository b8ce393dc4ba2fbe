# The table in which a fleet keeps its limit of connections, and what a program may do with it.

resource "aws_dynamodb_table" "connections" {
  name         = "connections"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"

  attribute {
    name = "pk"
    type = "S"
  }

  # Sweeps what is long dead. Nothing relies on it.
  ttl {
    attribute_name = "ttl_epoch"
    enabled        = true
  }
}

# Transactions are allowed by the permissions of what they do: there is no dynamodb:TransactWriteItems.
data "aws_iam_policy_document" "connections" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:Scan"]
    resources = [aws_dynamodb_table.connections.arn]
  }
}

resource "aws_iam_policy" "connections" {
  name   = "connections-of-the-fleet"
  policy = data.aws_iam_policy_document.connections.json
}
