/** The same messages sent to the stand-in and to a PostgreSQL 16 of its own, and their answers line by line. */
import { connect as connectSocket, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect } from 'vitest';
import { findPostgres } from '../../../src/dsql-local/cluster/find-postgres.js';
import { type Cluster, startCluster } from '../../../src/dsql-local/cluster/start-cluster.js';
import type { DsqlLocal, DsqlLocalOptions } from '../../../src/dsql-local.js';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import {
  readCommandComplete,
  readDataRow,
  readParameterDescription,
  readRowDescription,
} from '../../../src/wire/rows.js';
import { answers, type Step } from '../../pooler/raw/trace.js';
import { RawSession, type Received } from '../../wire/server/raw-session.js';
import { World } from '../conflicts/world.js';
import { tokenFor } from './token.js';

/** Longer than anything here takes, even on a busy machine. */
const deadlineMs = 10_000;

/** A client of the stand-in whose every byte is written by the test. */
export async function connectRaw(dsql: DsqlLocal): Promise<RawSession> {
  const { host, port, ca } = dsql;
  const password = await tokenFor(dsql);
  const socket = connectTls({ host, port, ca, ALPNProtocols: ['postgresql'] });
  await opened(socket, 'secureConnect');
  return RawSession.startOver(
    socket,
    { user: 'admin', database: 'postgres', password },
    StartupCode.version30,
  );
}

export class Pair {
  readonly world: World;
  readonly #plain: Cluster;

  private constructor(world: World, plain: Cluster) {
    this.world = world;
    this.#plain = plain;
  }

  static async start(options: DsqlLocalOptions = {}): Promise<Pair> {
    const programs = await findPostgres({});
    const [world, plain] = await Promise.all([World.start(options), startCluster({ programs })]);
    return new Pair(world, plain);
  }

  /** Runs statements on both, one by one, each of which has to succeed. */
  async setUp(...statements: readonly string[]): Promise<void> {
    const client = await this.world.connect();
    const plain = await this.connectPlain();
    for (const sql of statements) {
      await client.must(sql);
      const { writer } = plain;
      await plain.ask(() => {
        writer.begin(0x51);
        writer.text(sql);
        writer.end();
      });
    }
    plain.socket.destroy();
    await client.pg.end();
  }

  async connectPlain(): Promise<RawSession> {
    const { socketFolder = '', port, user } = this.#plain;
    const socket = connectSocket(join(socketFolder, `.s.PGSQL.${port}`));
    await opened(socket, 'connect');
    return RawSession.startOver(socket, { user, database: 'postgres', password: '' }, StartupCode.version30);
  }

  /** The answers of PostgreSQL and of the stand-in. */
  async play(steps: readonly Step[]): Promise<{ plain: string[]; local: string[] }> {
    const sessions = await Promise.all([this.connectPlain(), connectRaw(this.world.dsql)]);
    try {
      const [plain, local] = await Promise.all(sessions.map((session) => playIn(session, steps)));
      return { plain: plain ?? [], local: local ?? [] };
    } finally {
      for (const { socket } of sessions) socket.destroy();
    }
  }

  /** Expects the same answers of both. */
  async same(steps: readonly Step[], change: (line: string) => string = (line) => line): Promise<string[]> {
    const { plain, local } = await this.play(steps);
    expect(local.map(change)).toEqual(plain.map(change));
    expect(this.world.troubles).toEqual([]);
    return local;
  }

  async stop(): Promise<void> {
    await Promise.all([this.world.stop(), this.#plain.stop()]);
  }
}

async function opened(socket: Socket, event: string): Promise<void> {
  await new Promise<void>((resolve, reject) => socket.once(event, resolve).once('error', reject));
}

/** Sends each step when the one before is answered; a line for each message of the answers. */
async function playIn(session: RawSession, steps: readonly Step[]): Promise<string[]> {
  const lines: string[] = [];
  const names = new Map<number, string>();
  for (const { send, until } of steps) {
    const { writer } = send;
    session.socket.write(Buffer.from(writer.buffer.subarray(0, writer.length)));
    const received = await within(
      answers(session, until),
      () =>
        `no answer after:\n${[...lines, ...session.received.slice(-5).map((m) => lineOf(m, names))].join('\n')}`,
    );
    lines.push(
      ...received
        .filter(({ type }) => type !== Backend.parameterStatus)
        .map((message) => lineOf(message, names)),
      '--',
    );
  }
  return lines;
}

async function within<T>(promise: Promise<T>, complaint: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(complaint())), deadlineMs);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** PostgreSQL numbers what users create from here on. */
const firstUserOid = 16_384;

/** Oids of what the test creates become numbers in the order of their first appearance. */
function lineOf({ type, bytes }: Received, names: Map<number, string>): string {
  const letter = String.fromCharCode(type);
  const { length } = bytes;
  const oid = (id: number): string => {
    if (id < firstUserOid) return String(id);
    const name = names.get(id) ?? `#${names.size + 1}`;
    names.set(id, name);
    return name;
  };
  switch (type) {
    case Backend.error:
    case Backend.notice: {
      const { severity, code, message, detail, hint, position, constraint } = readErrorFields(
        bytes,
        0,
        length,
      );
      const more = { detail, hint, position, constraint };
      return `${letter} ${severity} ${code} ${message} ${JSON.stringify(more)}`;
    }
    case Backend.commandComplete:
      return `${letter} ${readCommandComplete(bytes, 0, length)}`;
    case Backend.dataRow:
      return `${letter} ${readDataRow(bytes, 0, length).map(shown).join(' | ')}`;
    case Backend.parameterDescription:
      return `${letter} ${readParameterDescription(bytes, 0, length).map(oid).join(' ')}`;
    case Backend.rowDescription:
      return `${letter} ${readRowDescription(bytes, 0, length)
        .map(
          (c) =>
            `${c.name}: ${oid(c.typeId)} ${c.typeSize} ${c.typeModifier} ${oid(c.tableId)}.${c.columnId} ${c.format}`,
        )
        .join(', ')}`;
    default:
      return `${letter} ${bytes.subarray(5).toString('latin1')}`.trimEnd();
  }
}

function shown(value: Buffer | null): string {
  if (value === null) return 'NULL';
  return value.every((byte) => byte >= 0x20 && byte < 0x7f)
    ? value.toString('latin1')
    : `\\x${value.toString('hex')}`;
}
