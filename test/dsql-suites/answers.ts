// Answers of a DSQL to the dialect's texts and to the conflict matrix.
import type pg from 'pg';
import {
  acceptedDdl,
  acceptedDrops,
  acceptedOrmTexts,
  acceptedQueries,
  acceptedTransactions,
} from '../dialect/accepted.js';
import { refusals } from '../dialect/refusals.js';
import { type Cell, prepareMatrix, runCell } from './matrix.js';
import type { DsqlTarget } from './target.js';

export interface Answer {
  readonly topic: string;
  readonly text: string;
  /** SQLSTATE, or undefined where it succeeded. */
  readonly code: string | undefined;
  readonly message: string;
}

/** As accepted by the newest DSQL, in an order in which they can be run. */
export async function answersToAccepted(target: DsqlTarget): Promise<Answer[]> {
  const client = await target.connect();
  const answers: Answer[] = [];
  const take = async (topic: string, texts: readonly string[], ask: Ask): Promise<void> => {
    for (const text of texts)
      answers.push({ topic, text, ...(await ask(client, ownNames(text, target.schema))) });
  };
  const isRunnable = (text: string): boolean => !text.startsWith('COPY');
  await take('DDL', acceptedDdl, askDdl);
  await take('queries', acceptedQueries.filter(isRunnable), ask);
  await client.query(`SET search_path = ${target.schema}, public`);
  await take('transactions', acceptedTransactions, ask);
  await take('texts of ORMs', acceptedOrmTexts, askWithNulls);
  await take('drops', acceptedDrops, askDdl);
  await client.end();
  return answers;
}

/** Each in a transaction that is rolled back, so that nothing is left where it is accepted after all. */
export async function answersToRefused(target: DsqlTarget): Promise<Answer[]> {
  const client = await target.connect();
  await askDdl(client, 'CREATE TABLE t (id bigint PRIMARY KEY, a int, b int)');
  const answers: Answer[] = [];
  for (const [topic, texts] of Object.entries(refusals))
    for (const [text] of texts) {
      const isBare = topic === 'Transactions';
      if (!isBare) await ask(client, 'BEGIN');
      answers.push({ topic, text, ...(await ask(client, ownNames(text, target.schema))) });
      await ask(client, 'ROLLBACK');
    }
  await askDdl(client, 'DROP TABLE t');
  await client.end();
  return answers;
}

/** Of the later COMMIT in each cell, or of the statement that failed before. */
export async function answersToConflicts(target: DsqlTarget, asked: readonly Cell[]): Promise<Answer[]> {
  const clients = await prepareMatrix(target);
  const answers: Answer[] = [];
  for (const cell of asked) {
    const [code, message] = await runCell(clients, cell);
    answers.push({ topic: 'conflicts', text: `${cell.first}, ${cell.second}, ${cell.order}`, code, message });
  }
  return answers;
}

type Ask = (client: pg.Client, sql: string) => Promise<Pick<Answer, 'code' | 'message'>>;

const good = { code: undefined, message: '' };

const ask: Ask = async (client, sql) => {
  try {
    await client.query(sql);
    return good;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return { code: code ?? 'none', message };
  }
};

/** Waits for its job; the schema may have been changed by others. */
const askDdl: Ask = async (client, sql) => {
  for (let attempt = 1; ; attempt++) {
    try {
      const { rows } = await client.query(sql);
      const id = (rows as readonly { job_id?: string }[])[0]?.job_id;
      return id === undefined ? good : await jobEnd(client, id);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (code === '40001' && attempt < 20) continue;
      return { code: code ?? 'none', message };
    }
  }
};

async function jobEnd(client: pg.Client, id: string): Promise<Pick<Answer, 'code' | 'message'>> {
  for (;;) {
    const answer = await client
      .query('SELECT status, details FROM sys.jobs WHERE job_id = $1', [id])
      .catch(() => undefined);
    const [row] = answer?.rows ?? [];
    if (answer !== undefined && (row === undefined || row.status === 'completed')) return good;
    if (row?.status === 'failed') return { code: 'job failed', message: String(row.details) };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Parameters are NULL: what is asked for is whether the text is understood. */
const askWithNulls: Ask = async (client, sql) => {
  const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  if (/^create table/i.test(sql)) return askDdl(client, sql);
  await ask(client, 'BEGIN');
  try {
    await client.query(
      sql,
      Array.from({ length: Math.max(0, ...numbers) }, () => null),
    );
    return good;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return { code: code ?? 'none', message };
  } finally {
    await ask(client, 'ROLLBACK');
  }
};

const ownName = /\b(?:app[23]?|reader|writer2?)\b/g;

/** Schemas and roles of the texts with the prefix of the suite, and its own schema in place of public. */
function ownNames(sql: string, schema: string): string {
  return sql
    .replaceAll(ownName, (name) => `${schema}_${name}`)
    .replaceAll(/\bpublic\b/g, schema)
    .replaceAll('"public"', `"${schema}"`);
}
