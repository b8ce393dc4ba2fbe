/**
 * The way of one process to a table that all share: every call takes time, and may go wrong in the ways in which calls
 * of DynamoDB do. What is lost on the way back has taken effect nevertheless.
 */
import type {
  Change,
  Failed,
  FailureReason,
  Finding,
  GiveUp,
  Item,
  ReadReply,
  Table,
  WriteReply,
} from '../../../coordination/dynamodb/table.js';
import type { Random } from '../../../kernel/random.js';
import type { MemoryTable } from './memory-table.js';

/** The parts of calls that go wrong, each from 0 to 1. */
export interface TableFaults {
  /** Lost before they took effect. */
  readonly lostRequests: number;
  /** Lost after they took effect. */
  readonly lostReplies: number;
  readonly conflicts: number;
  readonly throttles: number;
}

export const noTableFaults: TableFaults = { lostRequests: 0, lostReplies: 0, conflicts: 0, throttles: 0 };

export interface TableNetwork {
  /** Milliseconds since any moment, at the table. */
  readonly now: () => number;
  readonly later: (delayMs: number, run: () => void) => void;
  /** Half of a round trip, drawn anew each time. */
  readonly halfWayMs: () => number;
  /** True if nothing gets through now. */
  readonly isCutOff: () => boolean;
  readonly faults: () => TableFaults;
  readonly random: Random;
}

/** So that the server's time is not mistaken for anybody's own. */
export const epochMs = 1_700_000_000_000;

export class RemoteTable implements Table {
  readonly #table: MemoryTable;
  readonly #network: TableNetwork;

  constructor(table: MemoryTable, network: TableNetwork) {
    this.#table = table;
    this.#network = network;
  }

  read(key: string, answer: (reply: ReadReply<Item | undefined>) => void): GiveUp {
    return this.#call(
      () => ({ kind: 'done', value: this.#table.get(key), servedAtMs: this.#servedAtMs() }),
      answer,
    );
  }

  list(prefix: string, answer: (reply: ReadReply<readonly Item[]>) => void): GiveUp {
    return this.#call(
      () => ({ kind: 'done', value: this.#table.list(prefix), servedAtMs: this.#servedAtMs() }),
      answer,
    );
  }

  write(change: Change, answer: (reply: WriteReply) => void): GiveUp {
    return this.#call<WriteReply>(() => this.#written(this.#table.apply([change]), change), answer);
  }

  writeAll(changes: readonly Change[], _token: string, answer: (reply: WriteReply) => void): GiveUp {
    const { random, faults } = this.#network;
    return this.#call<WriteReply>(() => {
      if (random.next() < faults().conflicts) return failed('conflict');
      return this.#written(this.#table.apply(changes), undefined);
    }, answer);
  }

  #written(findings: readonly Finding[] | undefined, change: Change | undefined): WriteReply {
    const servedAtMs = this.#servedAtMs();
    if (findings !== undefined) return { kind: 'refused', findings, servedAtMs };
    return { kind: 'done', value: change && this.#table.get(change.key), servedAtMs };
  }

  #servedAtMs(): number {
    return Math.floor((epochMs + this.#network.now()) / 1_000) * 1_000;
  }

  #call<R>(serve: () => R | Failed, answer: (reply: R | Failed) => void): GiveUp {
    const { later, halfWayMs, isCutOff, faults, random } = this.#network;
    let isGivenUp = false;
    const isLost = random.next() < faults().lostRequests;
    later(halfWayMs(), () => {
      if (isLost || isCutOff()) return;
      const reply = random.next() < faults().throttles ? failed('throttled') : serve();
      const isReplyLost = random.next() < faults().lostReplies;
      later(halfWayMs(), () => {
        if (!isReplyLost && !isGivenUp && !isCutOff()) answer(reply);
      });
    });
    return () => {
      isGivenUp = true;
    };
  }
}

function failed(reason: FailureReason): Failed {
  return { kind: 'failed', reason, error: new Error(`the table said ${reason}`) };
}
