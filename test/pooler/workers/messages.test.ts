// Messages between the processes of a pooler are checked when they come, and read as they were written.

import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tooManyClients } from '../../../src/pooler/clients/refusal.js';
import { ConfigError } from '../../../src/pooler/config/config-problems.js';
import { ConsoleError } from '../../../src/pooler/console/console-error.js';
import { decodeConfig, encodeConfig } from '../../../src/pooler/messages/config-codec.js';
import { decodeError, encodeError } from '../../../src/pooler/messages/error-codec.js';
import {
  type FromSupervisor,
  type FromWorker,
  questions,
  readFromSupervisor,
  readFromWorker,
} from '../../../src/pooler/messages/messages.js';
import { ownerOf, WorkerIds } from '../../../src/pooler/messages/worker-ids.js';
import { poolerConfig } from '../../support/pooler.js';

const report = {
  pool: 1,
  demand: 2,
  peak: 3,
  idleForMs: 1.5,
  hasClients: true,
  limit: 4,
  wanted: 1,
  seen: 2,
};

function ends(address: string) {
  return { localAddress: address, localPort: 40_000, remoteAddress: address, remotePort: 5_432 };
}

const ofWorkers: FromWorker[] = [
  { kind: 'ready' },
  { kind: 'took', ticket: 1 },
  { kind: 'clientsGone', tickets: [1, 2] },
  { kind: 'pool', pool: 1, user: 'app', database: 'app', server: 'db:5432', limit: 0 },
  { kind: 'keep', pool: 1, count: 3 },
  { kind: 'ask', report },
  { kind: 'reports', reports: [report, { ...report, idleForMs: undefined }] },
  { kind: 'release', pool: 1, count: 1, servers: [7] },
  {
    kind: 'server',
    server: { pool: 1, server: 7, host: 'db', port: 5432, processId: -5, secretKey: Buffer.alloc(32) },
  },
  { kind: 'dial', dial: { pool: 1, server: 7, path: '/run/.s.PGSQL.5432', ends: ends('unix') } },
  {
    kind: 'dial',
    dial: {
      ...{ pool: 1, server: 7, host: 'db', port: 5432, ends: ends('fe80::1%eth0') },
      key: { processId: -5, secretKey: Buffer.alloc(32) },
    },
  },
  { kind: 'dialEnded', pool: 1, server: 7 },
  {
    kind: 'facts',
    facts: { address: '::1', port: 5432, isDirect: true, authenticationMs: 60_000, askedOver: ends('::1') },
  },
  { kind: 'log', level: 'info', message: 'client connected', details: { user: 'app', tls: undefined } },
  { kind: 'call', call: 1, what: 'place', body: { user: 'app', database: 'app' } },
  { kind: 'answer', call: 1, value: undefined },
];

const ofSupervisors: FromSupervisor[] = [
  {
    ...{ kind: 'client', ticket: 1, endpoint: 0 },
    readAhead: { bytes: Buffer.from('startup'), declined: ['gssenc', 'ssl'], waitedMs: 1.5 },
  },
  { kind: 'granted', pool: 1 },
  { kind: 'recalled', pool: 1, count: 2, hanging: 1 },
  { kind: 'keep', pool: 1, count: 2 },
  { kind: 'share', pool: 1 },
  { kind: 'shutdown', deadlineMs: 30_000, mode: 'wait_for_servers' },
  { kind: 'drop', call: 3 },
];

test.each(ofWorkers)('A message of a worker is taken: $kind', (message) => {
  expect(readFromWorker(deserialize(serialize(message)))).toEqual(message);
});

test.each(ofSupervisors)('A message of the supervisor is taken: $kind', (message) => {
  expect(readFromSupervisor(deserialize(serialize(message)))).toEqual(message);
});

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a text', 'ready'],
  ['an unknown kind', { kind: 'steady' }],
  ['the name of something that every object has', { kind: 'constructor' }],
  ['one that lacks something', { kind: 'took' }],
  ['one with something more', { kind: 'ready', and: 1 }],
  ['a negative count', { kind: 'release', pool: 1, count: -1, servers: [] }],
  ['half a slot', { kind: 'release', pool: 1, count: 0.5, servers: [] }],
  ['a key that is too long', { kind: 'server', server: { ...serverNote(), secretKey: Buffer.alloc(257) } }],
  ['an address that is too long', { kind: 'dial', dial: { pool: 1, server: 7, ends: ends('x'.repeat(65)) } }],
  ['a name without an end', { ...(ofWorkers[2] as object), user: 'x'.repeat(16_385) }],
  ['a log without an end', { kind: 'log', level: 'info', message: 'x'.repeat(65_537), details: {} }],
  ['a list that is none', { kind: 'reports', reports: { length: 1 } }],
  ['a message of the other side', { kind: 'granted', pool: 1 }],
])('A message is refused: %s', (_, message) => {
  expect(readFromWorker(message)).toBeUndefined();
});

test('A message that is anything at all never throws', () => {
  fc.assert(
    fc.property(fc.anything({ withMap: true, withTypedArray: true }), (value) => {
      readFromWorker(value);
      readFromSupervisor({ kind: 'begin', beginning: value });
      questions.control(value);
    }),
  );
});

function serverNote() {
  return (ofWorkers[6] as Extract<FromWorker, { kind: 'server' }>).server;
}

const read = () =>
  poolerConfig({
    auth: { type: 'trust' },
    databases: { app: { host: 'db.example', password: 'sesame' } },
    users: { app: { password: 'open' } },
  });

test('A configuration is the same on the other side, secrets included', () => {
  const config = read();
  const copy = decodeConfig(deserialize(serialize(encodeConfig(config))));
  expect(copy).toEqual(config);
  expect(copy.databases.get('app')?.password?.reveal()).toBe('sesame');
  expect(copy.users.get('app')?.password?.reveal()).toBe('open');
});

test('A configuration can not be changed there either, and shows no secret', () => {
  const copy = decodeConfig(encodeConfig(read()));
  expect(Object.isFrozen(copy.pooling)).toBe(true);
  expect(() => (copy.databases as Map<string, unknown>).clear()).toThrow(TypeError);
  expect(JSON.stringify([...copy.databases])).not.toContain('sesame');
});

test.each([
  new ConsoleError('42601', 'SHOW needs to be told what to show', 'SHOW HELP lists all commands.'),
  new ConfigError([{ path: 'pooling.poolSize', message: 'must be a number', place: undefined }]),
  tooManyClients('user "app"', 2, 'max_user_client_connections'),
])('An error keeps its class and fields between processes: $name', (error) => {
  const copy = decodeError(deserialize(serialize(encodeError(error))));
  expect(copy).toBeInstanceOf(error.constructor);
  expect({ ...copy, message: copy.message }).toEqual({ ...error, message: error.message });
});

test('An error of any other kind keeps its message and its code', () => {
  const copy = decodeError(encodeError(Object.assign(new Error('no more files'), { code: 'EMFILE' })));
  expect(copy).toMatchObject({ message: 'no more files', code: 'EMFILE' });
  expect(decodeError(encodeError('a text')).message).toBe('a text');
});

test('A number with the worker in it tells its worker, and is a positive number of four bytes', () => {
  const cases = fc
    .integer({ min: 2, max: 64 })
    .chain((workers) =>
      fc.tuple(
        fc.constant(workers),
        fc.integer({ min: 1, max: workers }),
        fc.integer({ min: 1, max: 2 ** 24 - 1 }),
      ),
    );
  fc.assert(
    fc.property(cases, ([workers, worker, own]) => {
      const id = new WorkerIds(worker, workers).of(own);
      expect(id).toBeGreaterThan(0);
      expect(id).toBeLessThanOrEqual(0x7fff_ffff);
      expect(ownerOf(id, workers)).toEqual({ worker, own });
    }),
  );
});

test('A number with the worker in it that no worker has given out has no owner', () => {
  expect(ownerOf(5, 2)).toBeUndefined();
  expect(ownerOf(0x7fff_ffff, 2)).toBeUndefined();
  expect(ownerOf(-1, 2)).toBeUndefined();
});
