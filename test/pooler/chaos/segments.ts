// Pieces of a pipeline, each up to one ReadyForQuery: what to send, and what the answer must be.
import { flush, sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeDescribe,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, Target } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { readCommandComplete, readDataRow } from '../../../src/wire/rows.js';
import type { SeededRandom } from '../../support/seeded-random.js';
import type { Received } from '../../wire/server/raw-session.js';
import { insertOf, lineOf, type Transfer, updatesOf } from './bank.js';

export interface Segment {
  write(writer: MessageWriter): void;
  /** The types of the answer, without ReadyForQuery and without what may come at any time. */
  readonly types: string;
  /** The first column of the rows, where rows are expected. */
  readonly tokens?: readonly string[];
  /** Errors that it may lead to, besides those that anyone may get. */
  readonly accepted?: readonly string[];
  /** Text that the expected error contains. */
  readonly errorSays?: string;
  /** Transfers that the segment commits, alone or with earlier ones. */
  readonly commits?: Transfer;
  /** The COMMIT of a transaction, whose tag says whether it committed. */
  readonly isCommit?: boolean;
  /** A statement of this name is prepared when it has succeeded. */
  readonly prepares?: string;
}

const change = 'update public.account set balance = balance + $1 where id = $2';
const insert = 'insert into public.ledger values ($1, $2, $3, $4, $5, $6, $7)';

/** A transfer as one pipeline: the Sync commits it. */
export function transferPipeline(transfer: Transfer, random: SeededRandom): Segment {
  const { source, target, amount } = transfer;
  const [first, second] = source < target ? [source, target] : [target, source];
  const isNamed = random.chance(0.5);
  const closes = isNamed && random.chance(0.5);
  // Not used again: each name is new.
  const name = isNamed ? `change ${transfer.id}` : '';
  return {
    types: `${isNamed ? '12C2C' : '12C12C'}12C${closes ? '3' : ''}`,
    commits: transfer,
    write(writer) {
      for (const [index, id] of [first, second].entries()) {
        if (index === 0 || !isNamed) writeParse(writer, { name, text: change });
        writeBind(writer, {
          statement: name,
          values: [String(id === source ? -amount : amount), String(id)],
        });
        writeExecute(writer);
      }
      writeParse(writer, { text: insert });
      writeBind(writer, { values: lineOf(transfer) });
      writeExecute(writer);
      if (closes) writeClose(writer, Target.statement, name);
      writer.append(sync);
    },
  };
}

/** A transfer as one call of a function. */
export function transferCall(transfer: Transfer): Segment {
  return {
    types: '12DC',
    tokens: [transfer.id],
    commits: transfer,
    write(writer) {
      writeParse(writer, { text: 'select public.transfer($1, $2, $3, $4, $5, $6, $7)' });
      writeBind(writer, { values: lineOf(transfer) });
      writeExecute(writer);
      writer.append(sync);
    },
  };
}

/** A transfer in a transaction of several steps, all of which are sent without waiting. */
export function transferTransaction(transfer: Transfer, random: SeededRandom): Segment[] {
  const [first, second] = updatesOf(transfer);
  const query = (text: string): Segment => ({ types: 'C', write: (writer) => writeQuery(writer, text) });
  const extended = (text: string): Segment => ({
    types: '12C',
    write(writer) {
      writeParse(writer, { text });
      writeBind(writer, {});
      writeExecute(writer);
      writer.append(sync);
    },
  });
  const any = (text: string): Segment => (random.chance(0.5) ? query(text) : extended(text));
  return [
    // The segment must not fail: the next one would be committed alone.
    query('begin'),
    any(first),
    any(second),
    any(insertOf(transfer)),
    { ...any('commit'), commits: transfer, isCommit: true },
  ];
}

/** A read of a token, with a statement that is kept or one that is there already. */
export function tokenRead(token: string, random: SeededRandom, known: readonly string[]): Segment {
  const text = 'select $1::text';
  const bindAndExecute = (writer: MessageWriter, statement: string): void => {
    writeBind(writer, { statement, values: [token] });
    writeExecute(writer);
    writer.append(sync);
  };
  if (known.length > 0 && random.chance(0.6)) {
    const name = random.pick(known);
    return { types: '2DC', tokens: [token], write: (writer) => bindAndExecute(writer, name) };
  }
  const name = random.chance(0.5) ? `read ${token}` : '';
  const describes = random.chance(0.4);
  return {
    types: describes ? '1tT2DC' : '12DC',
    tokens: [token],
    ...(name === '' ? {} : { prepares: name }),
    write(writer) {
      writeParse(writer, { name, text });
      if (describes) writeDescribe(writer, Target.statement, name);
      bindAndExecute(writer, name);
    },
  };
}

/** Rows in portions, each asked for by itself. */
export function portalRead(token: string, random: SeededRandom): Segment {
  const portal = random.chance(0.5) ? 'portal' : '';
  return {
    types: '12DDDsDDDsDC',
    tokens: new Array<string>(7).fill(token),
    write(writer) {
      writeParse(writer, { text: 'select $1::text from generate_series(1, 7)' });
      writeBind(writer, { portal, values: [token] });
      for (let times = 0; times < 3; times++) {
        writeExecute(writer, portal, 3);
        if (random.chance(0.3)) writer.append(flush);
      }
      writer.append(sync);
    },
  };
}

export function simpleRead(token: string): Segment {
  return {
    types: 'TDCTDC',
    tokens: [token, token],
    write: (writer) => writeQuery(writer, `select '${token}'; select '${token}'`),
  };
}

/** A message that is longer than what is read at once, and that is passed on before it is there. */
export function longQuery(token: string): Segment {
  const filler = 'f'.repeat(150_000);
  return {
    types: 'TDC',
    tokens: [token],
    write: (writer) => writeQuery(writer, `/* ${filler} */ select '${token}'`),
  };
}

export function failure(token: string): Segment {
  return {
    types: '',
    accepted: ['22P02'],
    errorSays: token,
    write(writer) {
      writeParse(writer, { text: 'select $1::int' });
      writeBind(writer, { values: [token] });
      writeExecute(writer);
      writeParse(writer, { text: 'never looked at' });
      writer.append(sync);
    },
  };
}

/** A pipeline that ends with a Query in place of a Sync. */
export function mixture(token: string): Segment {
  return {
    types: '12DCTDC',
    tokens: [token, token],
    write(writer) {
      writeParse(writer, { text: 'select $1::text' });
      writeBind(writer, { values: [token] });
      writeExecute(writer);
      writeQuery(writer, `select '${token}'`);
    },
  };
}

export function emptyQuery(): Segment {
  return { types: 'I', write: (writer) => writeQuery(writer, '') };
}

/** More rows than sockets keep. */
export function largeRead(token: string): Segment {
  const rows = 120;
  return {
    types: `T${'D'.repeat(rows)}C`,
    tokens: new Array<string>(rows).fill(token.repeat(1_000)),
    write: (writer) => writeQuery(writer, `select repeat('${token}', 1000) from generate_series(1, ${rows})`),
  };
}

export function copyOut(token: string): Segment {
  const rows = 50;
  return {
    types: `H${'d'.repeat(rows)}cC`,
    tokens: new Array<string>(rows).fill(`${token}\n`),
    write: (writer) =>
      writeQuery(writer, `copy (select '${token}' from generate_series(1, ${rows})) to stdout`),
  };
}

/** The mistake in an answer that is no error. */
export function differenceOf(segment: Segment, messages: readonly Received[]): string | undefined {
  const types = messages.map(({ type }) => String.fromCharCode(type)).join('');
  if (types !== `${segment.types}Z`)
    return `the answer is ${types.slice(0, 80)} in place of ${segment.types}Z`;
  const rows = messages.flatMap(({ type, bytes }) => {
    if (type === Backend.dataRow) return [readDataRow(bytes, 0, bytes.length)[0]?.toString() ?? null];
    return type === Backend.copyData ? [bytes.subarray(5).toString()] : [];
  });
  const tokens = segment.tokens ?? [];
  const index = rows.findIndex((row, at) => row !== tokens[at]);
  if (index >= 0)
    return `row ${index} is ${rows[index]?.slice(0, 60)} in place of ${tokens[index]?.slice(0, 60)}`;
  return undefined;
}

export function tagOf(messages: readonly Received[]): string | undefined {
  const complete = messages.findLast(({ type }) => type === Backend.commandComplete);
  return complete && readCommandComplete(complete.bytes, 0, complete.bytes.length);
}
