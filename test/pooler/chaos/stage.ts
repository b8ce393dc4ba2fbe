// State that all actors of the chaos share: the pooler's address, required outcomes, and the list of violations.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Book } from './bank.js';

/** A client's place in the play. */
export interface Part {
  /** No other client has it. */
  readonly id: number;
  readonly user: string;
  readonly database: string;
}

export class Stage {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly books: ReadonlyMap<string, Book>;
  /** Violations, as sentences. */
  readonly wrong: string[] = [];
  /** How often something happened, by its name: a chaos in which nothing happens proves nothing. */
  readonly seen = new Map<string, number>();
  readonly #until: number;

  constructor(port: number, books: ReadonlyMap<string, Book>, seconds: number) {
    this.port = port;
    this.books = books;
    this.#until = Date.now() + 1_000 * seconds;
  }

  get isOver(): boolean {
    return Date.now() >= this.#until;
  }

  saw(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  /** Something is not as it must be. */
  complain(part: Part, what: string): void {
    const ms = Math.round(performance.now());
    this.wrong.push(`at ${ms} ms client ${part.id} (${part.user}@${part.database}): ${what}`);
  }

  /** A wait that is longer than this counts as hanging. */
  async inTime<T>(part: Part, what: string, promise: Promise<T>): Promise<T> {
    const timer = new AbortController();
    const late = sleep(longestMs, 'late' as const, { signal: timer.signal, ref: false });
    late.catch(() => {});
    const winner = await Promise.race([promise, late]).finally(() => timer.abort());
    if (winner !== 'late') return winner as T;
    promise.catch(() => {});
    this.complain(part, `no answer within ${longestMs} ms to ${what}`);
    throw new Lost('it hangs');
  }
}

const longestMs = 15_000;

/** A token that only one client has. Not a number. */
export function newToken(): string {
  return `t${randomBytes(6).toString('hex')}`;
}

/** The connection is gone, with or without a last word: nobody knows what became of what was sent. */
export class Lost extends Error {}

/** A definite answer: it failed, and the session goes on. */
export class Refused extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Errors that a client may get without a fault of its own: no server was free in time, or its transaction has failed before. */
const innocentErrors = ['53300', '08001', '25P02'];
/** Errors that may end a client: ended by an operator, by a timeout, with its server, or not let in. */
const innocentEnds = [
  '57P01',
  '57P02',
  '57P03',
  '57014',
  '25P03',
  '25P04',
  '57P05',
  '08006',
  '08001',
  '53300',
];

export interface Judged {
  readonly severity?: string | undefined;
  readonly code?: string | undefined;
  readonly message: string;
}

/** The exception to throw for an error. One that this client should not have got is a complaint. */
export function judge(
  stage: Stage,
  part: Part,
  { severity, code = '', message }: Judged,
  accepted: readonly string[] = [],
): Lost | Refused {
  if (severity === undefined) return new Lost(message);
  const isEnd = severity === 'FATAL' || severity === 'PANIC';
  const innocent = isEnd ? innocentEnds : [...innocentErrors, ...accepted];
  if (!innocent.includes(code)) stage.complain(part, `got ${severity} ${code}: ${message}`);
  stage.saw(`${severity} ${code}`);
  return isEnd ? new Lost(message) : new Refused(code, message);
}
