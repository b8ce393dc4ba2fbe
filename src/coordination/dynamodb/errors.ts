/** Errors of a table that many share. */
import { HeadgateError } from '../../kernel/errors.js';

/** `headgate/dynamodb` talks to DynamoDB through a package that is not installed with headgate. */
export class DynamoPackageMissingError extends HeadgateError {
  constructor(cause: unknown) {
    super(
      'HG_DYNAMODB_PACKAGE',
      '@aws-sdk/client-dynamodb could not be loaded. Install it: npm install @aws-sdk/client-dynamodb',
      { cause },
    );
  }
}

/** A call of DynamoDB failed while a caller waited for it. `cause` is its error. */
export class DynamoCallError extends HeadgateError {
  /** Why, in one word. */
  readonly reason: string;

  constructor(reason: string, cause: unknown) {
    const why = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
    super('HG_DYNAMODB_CALL', `DynamoDB could not be asked (${reason}): ${why}`, { cause });
    this.reason = reason;
  }
}
