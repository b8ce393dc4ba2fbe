// A hand-written sequence of messages, sent to a server and to the pooler in front of it, and what both answer.
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { copyDone, flush, sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyData,
  writeCopyFail,
  writeDescribe,
  writeExecute,
  writeFunctionCall,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode, Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { readCommandComplete, readDataRow, readRowDescription } from '../../../src/wire/rows.js';
import { readParameterStatus } from '../../../src/wire/session-messages.js';
import type { TestDatabase } from '../../support/postgres.js';
import { RawSession, type Received } from '../../wire/server/raw-session.js';

export interface Formats {
  readonly formats?: readonly number[];
  readonly resultFormats?: readonly number[];
}

/** Writes the messages of a client in few letters. */
export class Script {
  readonly writer = new MessageWriter();

  query(text: string): this {
    writeQuery(this.writer, text);
    return this;
  }

  parse(text: string, name = '', parameterTypes: readonly number[] = []): this {
    writeParse(this.writer, { name, text, parameterTypes });
    return this;
  }

  /** Formats are 0 for text and 1 for binary: none for all text, one for all, or one each. */
  bind(
    values: readonly (string | Buffer | null)[] = [],
    statement = '',
    portal = '',
    { formats = [], resultFormats = [] }: Formats = {},
  ): this {
    writeBind(this.writer, { portal, statement, values, formats, resultFormats });
    return this;
  }

  describeStatement(name = ''): this {
    writeDescribe(this.writer, Target.statement, name);
    return this;
  }

  describePortal(name = ''): this {
    writeDescribe(this.writer, Target.portal, name);
    return this;
  }

  execute(portal = '', maxRows = 0): this {
    writeExecute(this.writer, portal, maxRows);
    return this;
  }

  closeStatement(name = ''): this {
    writeClose(this.writer, Target.statement, name);
    return this;
  }

  closePortal(name = ''): this {
    writeClose(this.writer, Target.portal, name);
    return this;
  }

  functionCall(functionId: number, values: readonly (string | null)[]): this {
    writeFunctionCall(this.writer, { functionId, values });
    return this;
  }

  sync(): this {
    this.writer.append(sync);
    return this;
  }

  flush(): this {
    this.writer.append(flush);
    return this;
  }

  copyData(data: string): this {
    writeCopyData(this.writer, Buffer.from(data));
    return this;
  }

  copyDone(): this {
    this.writer.append(copyDone);
    return this;
  }

  copyFail(reason: string): this {
    writeCopyFail(this.writer, reason);
    return this;
  }

  bytes(...bytes: readonly number[]): this {
    this.writer.append(Buffer.from(bytes));
    return this;
  }
}

/** What ends a step: so many messages of a type, or the end of the connection. */
export type Until = { readonly type: number; readonly count: number } | 'closed';

export interface Step {
  readonly send: Script;
  readonly until: Until;
}

/** Sends a script, and waits for so many ReadyForQuery. */
export function step(script: (script: Script) => Script, until: number | Until = 1): Step {
  return {
    send: script(new Script()),
    until: typeof until === 'number' ? { type: Backend.readyForQuery, count: until } : until,
  };
}

export function untilType(type: number, count = 1): Until {
  return { type, count };
}

/** How the bytes of a step are sent. */
export type Send = (session: RawSession, bytes: Buffer) => void | Promise<void>;

const atOnce: Send = (session, bytes) => {
  session.socket.write(bytes);
};

/** Plays all steps in one session; a line for each message that came. */
export async function play(db: TestDatabase, steps: readonly Step[], send: Send = atOnce): Promise<string[]> {
  const session = await RawSession.start(db, StartupCode.version30);
  try {
    return await playIn(session, steps, send);
  } finally {
    session.socket.destroy();
  }
}

export async function playIn(
  session: RawSession,
  steps: readonly Step[],
  send: Send = atOnce,
): Promise<string[]> {
  const lines: string[] = [];
  for (const { send: script, until } of steps) {
    const { writer } = script;
    await send(session, Buffer.from(writer.buffer.subarray(0, writer.length)));
    lines.push(...(await answers(session, until)).map(lineOf), '--');
  }
  return lines;
}

/** All messages up to the one that ends a step. */
export async function answers(session: RawSession, until: Until): Promise<Received[]> {
  const received: Received[] = [];
  let missing = until === 'closed' ? Number.POSITIVE_INFINITY : until.count;
  while (missing > 0) {
    try {
      const message = await session.next();
      received.push(message);
      if (until !== 'closed' && message.type === until.type) missing--;
    } catch (error) {
      if (until !== 'closed') throw error;
      return received;
    }
  }
  return received;
}

/** Everything of a message that must be the same, whoever sent it. */
function lineOf({ type, bytes }: Received): string {
  const name = String.fromCharCode(type);
  switch (type) {
    case Backend.error:
    case Backend.notice: {
      const { severity, code, message } = readErrorFields(bytes, 0, bytes.length);
      return `${name} ${severity} ${code} ${message}`;
    }
    case Backend.commandComplete:
      return `${name} ${readCommandComplete(bytes, 0, bytes.length)}`;
    case Backend.dataRow:
      return `${name} ${readDataRow(bytes, 0, bytes.length).join('|')}`;
    case Backend.rowDescription:
      return `${name} ${readRowDescription(bytes, 0, bytes.length)
        .map((column) => `${column.name}:${column.typeId}`)
        .join(' ')}`;
    case Backend.parameterStatus: {
      const status = readParameterStatus(bytes, 0, bytes.length);
      return `${name} ${status.name}=${status.value}`;
    }
    default:
      return `${name} ${bytes.subarray(5).toString('latin1')}`;
  }
}
