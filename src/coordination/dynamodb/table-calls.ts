/** Calls of the table: each has a deadline and is timed, and each reply sets the server's clock. */
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';
import { formatDuration } from '../../kernel/duration.js';
import type { Random } from '../../kernel/random.js';
import { LeaseCoordinatorError } from '../errors.js';
import { idSource } from '../lease-functions.js';
import { ServerClock } from './server-clock.js';
import type { Change, Failed, FailureReason, GiveUp, Item, ReadReply, Table, WriteReply } from './table.js';

export interface CallWorld {
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  /** Timeout of one call. */
  readonly timeoutMs: number;
}

/** Calls of the table so far. */
export interface CallTally {
  calls: number;
  /** Calls that were to change something, whether or not they did. */
  writes: number;
  failures: Record<FailureReason, number>;
  /** Milliseconds, of all that were answered. */
  answeredMs: number;
  answered: number;
  /** Duration of the last call that was answered. */
  lastMs: number;
}

type Answer<R> = (reply: R, sentAt: number) => void;

export class TableCalls {
  readonly time = new ServerClock();
  readonly tally: CallTally = {
    calls: 0,
    writes: 0,
    failures: { conflict: 0, throttled: 0, misconfigured: 0, unavailable: 0 },
    answeredMs: 0,
    answered: 0,
    lastMs: 0,
  };
  readonly #table: Table;
  readonly #world: CallWorld;
  readonly #nextToken: () => string;
  readonly #underWay = new Set<GiveUp>();
  /** Why the last call failed; undefined when it did not. */
  lastFailure: Failed | undefined;

  constructor(table: Table, world: CallWorld) {
    this.#table = table;
    this.#world = world;
    this.#nextToken = idSource(world.random);
  }

  read(key: string, answer: Answer<ReadReply<Item | undefined>>): void {
    this.#call<ReadReply<Item | undefined>>((answered) => this.#table.read(key, answered), answer);
  }

  list(prefix: string, answer: Answer<ReadReply<readonly Item[]>>): void {
    this.#call<ReadReply<readonly Item[]>>((answered) => this.#table.list(prefix, answered), answer);
  }

  write(change: Change, answer: Answer<WriteReply>): void {
    this.tally.writes++;
    this.#call<WriteReply>((answered) => this.#table.write(change, answered), answer);
  }

  writeAll(changes: readonly Change[], answer: Answer<WriteReply>): void {
    this.tally.writes += changes.length;
    this.#call<WriteReply>((answered) => this.#table.writeAll(changes, this.#nextToken(), answered), answer);
  }

  /** Gives up all calls under way. */
  giveUp(): void {
    for (const giveUp of [...this.#underWay]) giveUp();
  }

  #call<R extends ReadReply<unknown> | WriteReply>(
    make: (answered: (reply: R | Failed) => void) => GiveUp,
    answer: Answer<R | Failed>,
  ): void {
    const { clock, timeoutMs } = this.#world;
    const sentAt = clock.now();
    let isOver = false;
    const end = (reply: R | Failed | undefined): void => {
      if (isOver) return;
      isOver = true;
      alarm.clear();
      this.#underWay.delete(giveUp);
      if (reply === undefined) return;
      this.#note(reply, sentAt);
      answer(reply, sentAt);
    };
    const alarm: Alarm = this.#world.alarm(() => {
      end({ kind: 'failed', reason: 'unavailable', error: tooSlow(timeoutMs) });
      abandon();
    });
    const giveUp = (): void => {
      end(undefined);
      abandon();
    };
    this.tally.calls++;
    this.#underWay.add(giveUp);
    alarm.set(sentAt + timeoutMs, false);
    const abandon = make(end);
  }

  #note(reply: ReadReply<unknown> | WriteReply, sentAt: number): void {
    const now = this.#world.clock.now();
    this.lastFailure = reply.kind === 'failed' ? reply : undefined;
    if (reply.kind === 'failed') {
      this.tally.failures[reply.reason]++;
      return;
    }
    this.tally.answered++;
    this.tally.lastMs = now - sentAt;
    this.tally.answeredMs += now - sentAt;
    this.time.note(reply.servedAtMs, sentAt, now);
  }
}

function tooSlow(timeoutMs: number): Error {
  return new LeaseCoordinatorError(`DynamoDB did not answer within ${formatDuration(timeoutMs)}.`);
}
