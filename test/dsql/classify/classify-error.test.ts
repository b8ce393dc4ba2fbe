// Classes of errors, as drivers, ORMs, sockets and Headgate itself throw them.
import { connect } from 'node:net';
import { DrizzleQueryError } from 'drizzle-orm';
import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { connectError } from '../../../src/dsql/connect-errors.js';
import * as dsql from '../../../src/dsql.js';
import { classifyError } from '../../../src/dsql.js';
import * as main from '../../../src/index.js';
import { eventOf, rejectionOf } from '../../support/outcomes.js';

const noNumbers = { limit: 1, pending: 0, live: 0, closing: 0, idle: 0, inUse: 0, checking: 0, waiting: 0 };

/** An answer of the server, as node-postgres throws it. */
function answer(code: string, message = 'no', severity = 'ERROR'): Error {
  return Object.assign(new pg.DatabaseError(message, 10, 'error'), { code, severity });
}

const conflict = answer('40001', 'change conflicts with another transaction (OC000)');
const schemaConflict = answer('40001', 'schema has been updated by another transaction (OC001)');

test.each([
  ['40001', 'change conflicts with another transaction, please retry: (OC000)', 'retryable', 'data'],
  ['40001', 'mutation conflicts with another transaction, retry as needed (OC000)', 'retryable', 'data'],
  ['40001', 'could not serialize access due to concurrent update', 'retryable', 'data'],
  ['40001', 'schema has been updated by another transaction, please retry: (OC001)', 'retryable', 'schema'],
  ['OC001', 'something else', 'retryable', 'schema'],
  ['OC000', 'something else', 'retryable', 'data'],
  ['40P01', 'deadlock detected', 'retryable', 'data'],
  ['40003', 'no', 'outcome_unknown', undefined],
  ['0A000', 'unsupported statement: Truncate', 'unsupported_feature', undefined],
  ['42704', 'type "bigserial" does not exist', 'unsupported_feature', undefined],
  ['42704', 'type "mood" does not exist', 'permanent', undefined],
  ['53300', 'Unable to accept connection, too many open connections.', 'connection_limit', undefined],
  ['53400', 'Unable to accept connection, rate exceeded.', 'rate_limit', undefined],
  ['54000', 'transaction row limit exceeded', 'transaction_limit', undefined],
  ['53200', 'out of memory', 'transaction_limit', undefined],
  ['08006', 'unable to accept connection, access denied', 'auth', undefined],
  ['08006', 'unable to accept connection, waking up cluster, please retry later', 'unavailable', undefined],
  ['28P01', 'password authentication failed', 'auth', undefined],
  ['XX000', 'server unavailable', 'unavailable', undefined],
  ['XX000', 'cache lookup failed for relation 1', 'permanent', undefined],
  ['57P01', 'terminating connection due to administrator command', 'unavailable', undefined],
  ['23505', 'duplicate key value', 'permanent', undefined],
  ['P0001', 'raised by a function', 'permanent', undefined],
])('answers of the server %s %s is %s', (code, message, name, kind) => {
  const error = answer(code, message);
  expect(classifyError(error)).toMatchObject({ class: name, conflict: kind, sqlState: code, error });
});

test.each<[string, unknown]>([
  ['Drizzle', new DrizzleQueryError('select 1', [], schemaConflict)],
  ['a chain of causes', new Error('a', { cause: new Error('b', { cause: schemaConflict }) })],
  ['TypeORM', Object.assign(new Error('query failed'), { driverError: schemaConflict })],
  ['Sequelize', Object.assign(new Error('query failed'), { original: schemaConflict })],
  ['Prisma, raw', prisma('P2010', 'Raw query failed. Message: `... (OC001)`', { code: '40001' })],
  [
    'Prisma with a driver adapter',
    prisma('P2034', 'Transaction failed due to a write conflict or a deadlock.', {
      driverAdapterError: Object.assign(new Error('TransactionWriteConflict'), {
        cause: {
          kind: 'TransactionWriteConflict',
          originalCode: '40001',
          originalMessage: 'schema has been updated by another transaction (OC001)',
        },
      }),
    }),
  ],
  ['a wrapper that keeps the text only', new Error(`it failed: ${schemaConflict.message}`)],
  ['several at once', new AggregateError([schemaConflict, schemaConflict])],
])('wrapped errors: A conflict of schemas is found in what %s throws', (_, error) => {
  expect(classifyError(error)).toMatchObject({ class: 'retryable', conflict: 'schema', remedy: 'retry' });
});

test('wrapped errors: Prisma has codes of its own, and driver adapters have words', () => {
  expect(classifyError(prisma('P2034', 'write conflict'))).toMatchObject({
    class: 'retryable',
    conflict: 'data',
  });
  expect(classifyError(prisma('P1001', 'not reached')).class).toBe('unavailable');
  expect(classifyError(prisma('P2002', 'unique')).class).toBe('permanent');
  const closed = Object.assign(new Error('no'), { cause: { kind: 'ConnectionClosed' } });
  expect(classifyError(closed)).toMatchObject({ class: 'unavailable', sqlState: undefined });
});

test('wrapped errors: A text in the parameters of a query is not taken for a conflict', () => {
  const error = new DrizzleQueryError('insert into log values ($1)', [conflict.message], answer('23505'));
  expect(classifyError(error)).toMatchObject({ class: 'permanent', sqlState: '23505' });
});

test('wrapped errors: of several errors, the one that least allows a retry counts', () => {
  const both = (...errors: unknown[]) => classifyError(new AggregateError(errors)).class;
  expect(both(conflict, answer('23505'))).toBe('permanent');
  expect(both(conflict, new Error('own'))).toBe('unknown');
  expect(both(conflict, answer('23505'), new dsql.CommitOutcomeUnknownError(1, conflict))).toBe(
    'outcome_unknown',
  );
  const suppressed = { name: 'SuppressedError', error: conflict, suppressed: new Error('own') };
  expect(classifyError(suppressed).class).toBe('unknown');
});

test('wrapped errors: Causes that go round in a circle, without end, or with getters that throw are survived', () => {
  const circle: { cause?: unknown } = {};
  circle.cause = { cause: circle };
  expect(classifyError(circle).class).toBe('unknown');
  let deep: unknown = conflict;
  for (let n = 0; n < 15; n++) deep = { cause: deep };
  expect(classifyError(deep).class).toBe('retryable');
  for (let n = 0; n < 1_000; n++) deep = { cause: deep };
  expect(classifyError(deep).class).toBe('unknown');
  const wide = new AggregateError(Array.from({ length: 10_000 }, () => new Error('own')));
  expect(classifyError(wide).class).toBe('unknown');
  const hostile = Object.defineProperty(new Error('no'), 'code', {
    get() {
      throw new Error('gotcha');
    },
  });
  expect(classifyError(hostile).class).toBe('unknown');
});

test('wrapped errors: Whatever is thrown has a class', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
      expect(classifyError(thrown).class).toBeTypeOf('string');
      expect(classifyError(new Error('x', { cause: thrown })).class).toBeTypeOf('string');
    }),
  );
});

test('connections: A port without a listener, a name that does not exist and a full pool are different errors', async () => {
  const client = new pg.Client({ host: 'localhost', port: 1 });
  expect(classifyError(await rejectionOf(client.connect())).class).toBe('unavailable');
  const socket = connect({ host: 'nowhere.invalid', port: 1 });
  const [error] = await eventOf(socket, 'error');
  expect(classifyError(error).class).toBe('unavailable');
  const ended = new pg.Pool({ port: 1 });
  await ended.end();
  expect(classifyError(await rejectionOf(ended.connect()))).toMatchObject({
    class: 'permanent',
    remedy: 'never',
  });
  const full = new Error('timeout exceeded when trying to connect');
  expect(classifyError(full)).toMatchObject({ class: 'connection_limit', remedy: 'never' });
  expect(classifyError(new Error('Connection terminated unexpectedly')).class).toBe('unavailable');
});

test('connections: Errors of the pool have the class of what failed behind them', () => {
  const refused = connectError(answer('53400', 'Unable to accept connection, rate exceeded.', 'FATAL'));
  const denied = connectError(answer('08006', 'unable to accept connection, access denied', 'FATAL'));
  const token = connectError(new Error('no credentials'));
  expect(classifyError(refused).class).toBe('rate_limit');
  expect(classifyError(denied)).toMatchObject({ class: 'auth', remedy: 'never' });
  expect(classifyError(token)).toMatchObject({ class: 'permanent', remedy: 'never' });
  expect(classifyError(new main.AcquireTimeoutError(1, noNumbers, refused))).toMatchObject({
    class: 'rate_limit',
    remedy: 'later',
  });
  expect(classifyError(new main.AcquireTimeoutError(1, noNumbers, undefined))).toMatchObject({
    class: 'connection_limit',
    remedy: 'never',
  });
  expect(classifyError(new main.ReservoirEmptyError(1, noNumbers, undefined))).toMatchObject({
    class: 'connection_limit',
    remedy: 'later',
  });
  expect(classifyError(new main.ConnectFailedError(3, 250, denied))).toMatchObject({
    class: 'auth',
    remedy: 'never',
    retryAfterMs: 250,
  });
  expect(classifyError(new main.PoolClosedError()).class).toBe('permanent');
  expect(classifyError(new dsql.StatementTimeoutError(1)).class).toBe('outcome_unknown');
  expect(classifyError(new dsql.IdleInTransactionError(1)).class).toBe('permanent');
});

test('connections: retries that have failed inside are not repeated around them', () => {
  const spent = new dsql.TransactionRetriesExhaustedError(20, 1_000, 'attempts', conflict);
  expect(classifyError(spent)).toMatchObject({ class: 'retryable', remedy: 'never' });
  expect(classifyError(new Error('outer', { cause: spent }))).toMatchObject({ remedy: 'never' });
});

function prisma(code: string, message: string, meta?: object): Error {
  return Object.assign(new Error(message), { name: 'PrismaClientKnownRequestError', code, meta });
}
