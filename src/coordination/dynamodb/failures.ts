/** Classifies an error of the AWS SDK: a condition that did not hold, or the reason for which the call failed. */
import { itemOf } from './expressions.js';
import type { Failed, FailureReason, Finding, WriteReply } from './table.js';

interface SdkError {
  readonly name?: unknown;
  readonly Item?: Record<string, unknown>;
  readonly CancellationReasons?: readonly {
    readonly Code?: string;
    readonly Item?: Record<string, unknown>;
  }[];
}

/** The SDK's error name or a cancellation's code, and our reason for it. */
const reasons: Readonly<Record<string, FailureReason>> = {
  TransactionConflict: 'conflict',
  TransactionConflictException: 'conflict',
  TransactionInProgressException: 'conflict',
  ThrottlingError: 'throttled',
  ThrottlingException: 'throttled',
  ProvisionedThroughputExceeded: 'throttled',
  ProvisionedThroughputExceededException: 'throttled',
  RequestLimitExceeded: 'throttled',
  LimitExceededException: 'throttled',
  ResourceNotFoundException: 'misconfigured',
  AccessDeniedException: 'misconfigured',
  UnrecognizedClientException: 'misconfigured',
  InvalidSignatureException: 'misconfigured',
  IncompleteSignatureException: 'misconfigured',
  MissingAuthenticationTokenException: 'misconfigured',
  ExpiredTokenException: 'misconfigured',
  CredentialsProviderError: 'misconfigured',
  DynamoPackageMissingError: 'misconfigured',
  ValidationException: 'misconfigured',
  ValidationError: 'misconfigured',
};

/** `changes`: how many were to be made. */
export function replyToError(thrown: unknown, changes: number, servedAtMs: number): WriteReply {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, Item, CancellationReasons } = thrown as SdkError;
  if (name === 'ConditionalCheckFailedException')
    return { kind: 'refused', findings: [{ isRefused: true, item: itemOf(Item) }], servedAtMs };
  if (name !== 'TransactionCanceledException' || CancellationReasons === undefined)
    return failed(String(name), error);
  const findings: Finding[] = Array.from({ length: changes }, (_, index) => {
    const reason = CancellationReasons[index];
    return { isRefused: reason?.Code === 'ConditionalCheckFailed', item: itemOf(reason?.Item) };
  });
  if (findings.some(({ isRefused }) => isRefused)) return { kind: 'refused', findings, servedAtMs };
  const code = CancellationReasons.map(({ Code }) => Code).find(
    (Code) => Code !== undefined && Code !== 'None',
  );
  return failed(code ?? 'None', error);
}

function failed(word: string, error: Error): Failed {
  return {
    kind: 'failed',
    reason: Object.hasOwn(reasons, word) ? (reasons[word] as FailureReason) : 'unavailable',
    error,
  };
}
