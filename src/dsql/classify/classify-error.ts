/** `classifyError`: what a database error means, however deep an ORM has wrapped it. */
import { type ErrorClass, type ErrorClassification, errorClasses } from './error-class.js';
import { type ErrorFacts, type ErrorRule, ruleFor } from './rules.js';

/** Causes beyond these are not looked at. */
const deepest = 16;
const mostErrors = 100;

/** SQLSTATE classes begin so; `EPIPE` and Prisma's `P2034` have five characters too. `OC...` is AWS's own. */
const sqlStateText = /^(?:\d[\dA-Z]|F0|HV|P0|XX|OC)[\dA-Z]{3}$/;

/** How Prisma's driver adapters call what Prisma has a code for. */
const prismaKinds: Readonly<Record<string, string>> = {
  AuthenticationFailed: 'P1000',
  ConnectionClosed: 'P1017',
  DatabaseAccessDenied: 'P1010',
  DatabaseNotReachable: 'P1001',
  SocketTimeout: 'P1008',
  TooManyConnections: 'P2037',
  TransactionWriteConflict: 'P2034',
};

/** Where drivers and ORMs keep the error that they wrap. */
const wrappedIn = ['cause', 'driverError', 'original', 'originalError'] as const;

/**
 * Tells what an error means for a transaction: whether to run it again, wait, find out or give up. Looks into `cause`, into
 * the errors of an `AggregateError`, and into what Prisma, Drizzle and others keep in properties of their own.
 *
 * @example
 * ```ts
 * import { classifyError } from 'headgate/dsql';
 *
 * const conflict = Object.assign(new Error('change conflicts with another transaction (OC000)'), { code: '40001' });
 * const { class: name, conflict: kind } = classifyError(new Error('Failed query', { cause: conflict }));
 * console.log(name, kind); // 'retryable', 'data'
 * ```
 */
export function classifyError(error: unknown): ErrorClassification {
  return new Search().classify(error, 0) ?? found(undefined, 'unknown', undefined, error);
}

/** One search through an error and its causes; each is looked at once. */
class Search {
  readonly #seen = new Set<object>();

  classify(error: unknown, depth: number): ErrorClassification | undefined {
    if (typeof error !== 'object' || error === null) return undefined;
    if (depth > deepest || this.#seen.size >= mostErrors || this.#seen.has(error)) return undefined;
    this.#seen.add(error);
    const record = error as Record<string, unknown>;
    const facts = factsOf(record);
    const rule = ruleFor(facts);
    if (rule !== undefined && !rule.defersToCause) return found(rule, rule.class, facts, error);
    const wrapped = this.#wrapped(record, depth + 1);
    if (rule === undefined) return wrapped;
    if (wrapped === undefined || wrapped.class === 'unknown') return found(rule, rule.class, facts, error);
    return inherit(wrapped, rule, facts, record);
  }

  #wrapped(record: Record<string, unknown>, depth: number): ErrorClassification | undefined {
    for (const name of wrappedIn) {
      const inner = this.classify(read(record, name), depth);
      if (inner !== undefined) return inner;
    }
    const adapter = this.classify(propertyOf(read(record, 'meta'), 'driverAdapterError'), depth);
    if (adapter !== undefined) return adapter;
    return this.#gravest(membersOf(record), depth);
  }

  /** Several errors at once: the one that least allows a retry. One without a class of its own forbids it, too. */
  #gravest(members: readonly unknown[], depth: number): ErrorClassification | undefined {
    const others = new Set(members.filter((member) => !this.#seen.has(member as object)));
    const classified = [...others].map(
      (member) => this.classify(member, depth) ?? found(undefined, 'unknown', undefined, member),
    );
    if (classified.every((one) => one.class === 'unknown')) return undefined;
    return classified.reduce((worst, one) => (gravity(one) > gravity(worst) ? one : worst));
  }
}

const gravities: Readonly<Partial<Record<ErrorClass, number>>> = {
  retryable: 0,
  unavailable: 1,
  rate_limit: 2,
  connection_limit: 3,
  unknown: 4,
  outcome_unknown: 6,
};

function gravity({ class: name }: ErrorClassification): number {
  return gravities[name] ?? 5;
}

function membersOf(record: Record<string, unknown>): readonly unknown[] {
  const errors = read(record, 'errors');
  if (Array.isArray(errors)) return errors.slice(0, mostErrors);
  // SuppressedError, of a `using` whose end failed.
  return 'suppressed' in record ? [read(record, 'error'), read(record, 'suppressed')] : [];
}

function factsOf(record: Record<string, unknown>): ErrorFacts {
  const code = textOf(read(record, 'code')) ?? prismaKinds[textOf(read(record, 'kind')) ?? ''];
  // Prisma: P2010 keeps the server's code in `meta`; driver adapters keep it as `originalCode`.
  const candidates = [
    code,
    textOf(read(record, 'originalCode')),
    textOf(propertyOf(read(record, 'meta'), 'code')),
  ];
  const sqlState = candidates.find((one) => one !== undefined && sqlStateText.test(one));
  return {
    sqlState,
    code: code === sqlState ? undefined : code,
    message: textOf(read(record, 'message')) ?? textOf(read(record, 'originalMessage')) ?? '',
    reason: textOf(read(record, 'reason')),
  };
}

function found(
  rule: ErrorRule | undefined,
  name: ErrorClass,
  facts: ErrorFacts | undefined,
  error: unknown,
): ErrorClassification {
  return {
    class: name,
    remedy: rule?.remedy ?? errorClasses[name].remedy,
    conflict: rule?.conflict,
    sqlState: facts?.sqlState,
    retryAfterMs: retryAfterOf(error),
    error,
  };
}

/** The cause's class; but what was retried in vain is not retried again because of its cause. */
function inherit(
  inner: ErrorClassification,
  rule: ErrorRule,
  { code }: ErrorFacts,
  outer: Record<string, unknown>,
): ErrorClassification {
  const isSpent = code === 'HG_TRANSACTION_RETRIES_EXHAUSTED';
  return {
    ...inner,
    remedy: isSpent ? (rule.remedy ?? inner.remedy) : inner.remedy,
    retryAfterMs: retryAfterOf(outer) ?? inner.retryAfterMs,
  };
}

function retryAfterOf(error: unknown): number | undefined {
  const value = propertyOf(error, 'retryAfterMs');
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? read(value as Record<string, unknown>, name)
    : undefined;
}

/** A getter that throws must not hide the error that is being looked at. */
function read(record: Record<string, unknown>, name: string): unknown {
  try {
    return record[name];
  } catch {
    return undefined;
  }
}
