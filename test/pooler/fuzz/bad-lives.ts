// The lives of bad clients, each of which goes wrong at another moment, and what each of them must be told.
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { expect } from 'vitest';
import { ProtocolViolationError } from '../../../src/wire/errors.js';
import { sslRequest } from '../../../src/wire/fixed-messages.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend, Frontend } from '../../../src/wire/message-types.js';
import { frontendRules, type ScanRules } from '../../../src/wire/scan-rules.js';
import { ca } from '../../net/certificates.js';
import type { SeededRandom } from '../../support/seeded-random.js';
import { BadClient } from './bad-client.js';
import * as hostile from './hostile-bytes.js';

export interface Place {
  readonly port: number;
  readonly database: string;
  /** Limits of the pooler's messages, if they are not PostgreSQL's. */
  readonly rules?: ScanRules | undefined;
}

/** One bad client, from its first byte to its end. What must hold for it alone is checked here. */
export type Life = (place: Place, random: SeededRandom, tag: string) => Promise<void>;

/** How many were sent away with which code. */
export const goodbyes = new Map<string, number>();

function check(client: BadClient, tag: string): void {
  const { code } = client.lastError ?? {};
  if (code !== undefined && client.wasToldWhy) goodbyes.set(code, (goodbyes.get(code) ?? 0) + 1);
  expect(client.complaint).toBeUndefined();
  // Its own may have been bent, too; that of another client it never sees.
  const isForeign = (text: string): boolean => text !== tag && !client.hasSent(text);
  expect(client.rows.filter((text) => text.startsWith('bad')).filter(isForeign)).toEqual([]);
}

/** At the very beginning. */
const atStart: Life = async ({ port, database }, random, tag) => {
  const client = await BadClient.open(port, random, 0);
  const parts = random.chance(0.5)
    ? [hostile.otherStart(random)]
    : [hostile.startup(random, random.pick(['nobody', 'scram']), random.pick([database, 'none']))];
  const bytes = hostile.mutate(random, [...parts, ...hostile.session(random, tag)]);
  await client.send(random, bytes);
  await client.leave(random);
  // The answer to a wish for encryption is no message.
  if (!/^[SN]/.test(client.types)) check(client, tag);
};

/** In place of a password. */
const atPassword: Life = async ({ port, database }, random, tag) => {
  const client = await BadClient.open(port, random);
  await client.send(random, hostile.startup(random, random.pick(['scram', 'md5', 'clear']), database));
  await client.until(Backend.authentication, Backend.error);
  const answers = [hostile.password(random), hostile.password(random), ...hostile.session(random, tag)];
  await client.send(random, hostile.mutate(random, answers));
  await client.leave(random);
  check(client, tag);
  // Nobody gets in.
  expect(client.types).not.toContain('Z');
};

/** With nothing worse than a wrong password. */
const withWrongPassword: Life = async ({ port, database }, random, tag) => {
  const client = await BadClient.open(port, random);
  await client.send(random, hostile.startup(random, 'md5', database));
  await client.until(Backend.authentication, Backend.error);
  await client.send(random, hostile.wrongPassword());
  await client.untilClosed();
  check(client, tag);
  expect(client.types).not.toContain('Z');
};

/** Once it is let in. */
const inSession: Life = async ({ port, database, rules }, random, tag) => {
  const client = await BadClient.open(port, random);
  await logIn(client, random, database);
  await misbehave(client, random, tag, hostile.session(random, tag), rules);
};

const inCopy: Life = async ({ port, database, rules }, random, tag) => {
  const client = await BadClient.open(port, random);
  await logIn(client, random, database);
  await misbehave(client, random, tag, hostile.copySession(random, tag), rules);
};

const atConsole: Life = async ({ port }, random, tag) => {
  const client = await BadClient.open(port, random);
  await client.send(random, hostile.startup(random, 'watcher', 'headgate'));
  await client.until(Backend.readyForQuery, Backend.error);
  await misbehave(client, random, tag, hostile.consoleSession(random));
};

/** In place of the handshake. */
const atTls: Life = async ({ port }, random, tag) => {
  const client = await BadClient.open(port, random, 1);
  client.socket.write(sslRequest);
  await new Promise((resolve) => client.socket.once('readable', resolve).once('close', resolve));
  const parts = [await clientHello(), ...hostile.session(random, tag)];
  await client.send(random, random.chance(0.5) ? hostile.mutate(random, parts) : hostile.noise(random, 500));
  await client.leave(random);
};

/** Inside TLS, or beside it on the same connection. */
const inTls: Life = async ({ port, database, rules }, random, tag) => {
  const plain = await BadClient.open(port, random, Number.POSITIVE_INFINITY);
  plain.socket.write(sslRequest);
  await new Promise((resolve) => plain.socket.once('data', resolve).once('close', resolve));
  plain.socket.removeAllListeners('data');
  const socket = connectTls({ socket: plain.socket, ca, servername: 'localhost' });
  const client = new BadClient(socket);
  await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve));
  await logIn(client, random, database);
  if (random.chance(0.3)) {
    plain.socket.write(hostile.noise(random, 200));
    await client.leave(random);
  } else await misbehave(client, random, tag, hostile.session(random, tag), rules);
};

export const lives: readonly Life[] = [
  atStart,
  atPassword,
  withWrongPassword,
  inSession,
  inSession,
  inSession,
  inCopy,
  inCopy,
  atConsole,
  atTls,
  inTls,
];

async function logIn(client: BadClient, random: SeededRandom, database: string): Promise<void> {
  await client.send(random, hostile.startup(random, 'nobody', database));
  await client.until(Backend.readyForQuery, Backend.error);
}

/** Sends a session that is bent. Who is let in, and sends what is no message, is told so before it is sent away. */
async function misbehave(
  client: BadClient,
  random: SeededRandom,
  tag: string,
  parts: readonly Buffer[],
  rules = usualRules,
): Promise<void> {
  const isIn = client.types.includes('Z');
  const bytes = hostile.mutate(random, parts);
  await client.send(random, bytes);
  const { isBroken, hasEnded } = judge(bytes, rules);
  if (isIn && isBroken) {
    await client.untilClosed();
    expect(client.wasToldWhy, `it got ${client.types}`).toBe(true);
  } else await client.leave(random);
  check(client, tag);
  if (isIn && client.wasSentAway && !hasEnded) expect(client.wasToldWhy, `it got ${client.types}`).toBe(true);
}

const usualRules = frontendRules();

/** Whether these bytes are messages at all, and whether the client says goodbye among them. */
function judge(bytes: Buffer, rules: ScanRules): { isBroken: boolean; hasEnded: boolean } {
  const scanner = new MessageScanner(rules);
  try {
    scanner.push(bytes);
    while (scanner.next())
      if (scanner.isFirst && scanner.type === Frontend.terminate) return { isBroken: false, hasEnded: true };
  } catch (error) {
    if (!(error instanceof ProtocolViolationError)) throw error;
    return { isBroken: true, hasEnded: false };
  }
  return { isBroken: false, hasEnded: false };
}

/** The first bytes of TLS, as a client says them. */
function clientHello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        resolve(chunk);
        done();
      },
    });
    connectTls({ socket: wire, servername: 'localhost' }).on('error', () => {});
  });
}
