/**
 * Logins that a dead worker had under way. Its sockets are closed, but a server that is busy with a login does not notice until
 * it reads or writes, and its process id is unknown. Such a login holds its slot until it is known to be over:
 *
 * - The server is on this machine, and nothing is between: the kernel lists its end of the connection until its process ends.
 *   It does not list a connection that was reset, which happens only when the server writes. A server with a login under way
 *   then reads, and ends; a server that is past the login shows the session.
 * - Otherwise a login is over after `authentication_timeout`, counted from the worker's death, since the login began before.
 *   A session that the server shows then is past its login, and is waited for until it ends.
 *
 * Every wait has a limit.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolerLog } from '../log.js';
import type { DialEnds, DialNote } from '../messages/messages.js';
import type { PortsQuestion } from '../messages/server-questions.js';
import type { SocketTable } from './kernel-sockets.js';
import type { KnownServer } from './known-servers.js';
import type { WorkerPoolProxy } from './worker-pool-proxy.js';

export interface OrphanDial {
  readonly pool: WorkerPoolProxy;
  readonly note: DialNote;
}

export interface OrphanDialsParts {
  readonly log: PoolerLog;
  readonly knownServer: (ends: DialEnds) => KnownServer | undefined;
  readonly readSocketTable: () => Promise<SocketTable | undefined>;
  /** The ports of these connections that the server shows; undefined where no worker can ask now. */
  readonly whichPortsAreThere: (question: PortsQuestion) => Promise<ReadonlySet<number> | undefined>;
}

/** Times, which tests change. */
export interface DialTimes {
  /** `authentication_timeout` for a server that has not reported it: PostgreSQL's default. */
  readonly authenticationMs: number;
  /** Time that a server may take beyond that to end its process. */
  readonly graceMs: number;
  /** Logins still visible this long after that are given up. */
  readonly longestMs: number;
  readonly firstLookMs: number;
  readonly mostBetweenLooksMs: number;
}

export const usualDialTimes: DialTimes = {
  authenticationMs: 60_000,
  graceMs: 1_000,
  longestMs: 60_000,
  firstLookMs: 50,
  mostBetweenLooksMs: 500,
};

/** The kernel's list is read in several pieces, and may miss a socket once. */
const looksToBeSure = 2;
const slowerBy = 1.5;

type Verdict = 'there' | 'gone' | 'overdue' | 'given up';

export class OrphanDials {
  readonly #parts: OrphanDialsParts;
  readonly #times: DialTimes;

  constructor(parts: OrphanDialsParts, times: DialTimes) {
    this.#parts = parts;
    this.#times = times;
  }

  /** Calls `over` for each login when it is over. */
  async wait(
    worker: number,
    dials: readonly OrphanDial[],
    over: (dials: OrphanDial[]) => void,
  ): Promise<void> {
    if (dials.length === 0) return;
    const began = performance.now();
    const absences = new Map<OrphanDial, number>();
    const counts = { there: 0, gone: 0, overdue: 0, 'given up': 0 };
    this.#logBegin(worker, dials);
    let left = [...dials];
    for (let ms = this.#times.firstLookMs; left.length > 0; ) {
      await sleep(ms, undefined, { ref: false });
      ms = Math.min(ms * slowerBy, this.#times.mostBetweenLooksMs);
      const elapsedMs = performance.now() - began;
      const look = await this.#look(left, elapsedMs);
      const ended = left.filter((dial) => {
        const verdict = this.#judge(dial, look, absences, elapsedMs);
        if (verdict !== 'there') counts[verdict]++;
        return verdict !== 'there';
      });
      left = left.filter((dial) => !ended.includes(dial));
      if (ended.length > 0) over(ended);
    }
    this.#logEnd(worker, counts, Math.round(performance.now() - began));
  }

  #judge(dial: OrphanDial, look: Look, absences: Map<OrphanDial, number>, elapsedMs: number): Verdict {
    const isListed = this.#isListed(dial, look.table);
    const isSeen = look.shown.has(dial) || isListed === true;
    const absent = isListed === false && !isSeen ? (absences.get(dial) ?? 0) + 1 : 0;
    absences.set(dial, absent);
    if (absent >= looksToBeSure) return 'gone';
    const overdueMs = this.#overdueMs(dial, elapsedMs);
    if (overdueMs < 0) return 'there';
    if (!isSeen) return 'overdue';
    return overdueMs < this.#times.longestMs ? 'there' : 'given up';
  }

  /** Undefined where the kernel's list says nothing about this server. */
  #isListed({ note: { ends } }: OrphanDial, table: SocketTable | undefined): boolean | undefined {
    return this.#isOnThisMachine(ends) ? table?.hasServerEnd(ends) : undefined;
  }

  #isOnThisMachine(ends: DialEnds): boolean {
    return this.#parts.knownServer(ends)?.isOnThisMachine === true;
  }

  /** Negative while the login may be under way. */
  #overdueMs({ note }: OrphanDial, elapsedMs: number): number {
    return elapsedMs - this.#authenticationMs(note.ends) - this.#times.graceMs;
  }

  #authenticationMs(ends: DialEnds): number {
    return this.#parts.knownServer(ends)?.authenticationMs ?? this.#times.authenticationMs;
  }

  /** Asks the server only where its answer counts. */
  async #look(dials: readonly OrphanDial[], elapsedMs: number): Promise<Look> {
    const isOfUse = dials.some(({ note }) => this.#isOnThisMachine(note.ends));
    const table = isOfUse ? await this.#parts.readSocketTable() : undefined;
    const inDoubt = dials.filter((dial) => {
      const isListed = this.#isListed(dial, table);
      return isListed === false || (isListed === undefined && this.#overdueMs(dial, elapsedMs) >= 0);
    });
    return { table, shown: await this.#shown(inDoubt) };
  }

  /** Logins that the server shows to their user. A Unix socket has no port to look for. */
  async #shown(dials: readonly OrphanDial[]): Promise<ReadonlySet<OrphanDial>> {
    const groups = new Map<string, OrphanDial[]>();
    for (const dial of dials) {
      const { path, ends } = dial.note;
      if (path !== undefined) continue;
      const key = JSON.stringify([dial.pool.user, ends.remoteAddress, ends.remotePort, ends.localAddress]);
      groups.set(key, [...(groups.get(key) ?? []), dial]);
    }
    const found = await Promise.all(Array.from(groups.values(), (group) => this.#shownOf(group)));
    return new Set(found.flat());
  }

  async #shownOf(group: readonly OrphanDial[]): Promise<OrphanDial[]> {
    const { pool, note } = group[0] as OrphanDial;
    const there = await this.#parts.whichPortsAreThere({
      user: pool.user,
      address: note.ends.remoteAddress,
      port: note.ends.remotePort,
      from: note.ends.localAddress,
      ports: group.map((dial) => dial.note.ends.localPort),
    });
    return group.filter((dial) => there?.has(dial.note.ends.localPort) === true);
  }

  #logBegin(worker: number, dials: readonly OrphanDial[]): void {
    const visible = dials.filter(({ note }) => this.#isOnThisMachine(note.ends)).length;
    const longest = Math.max(...dials.map(({ note }) => this.#authenticationMs(note.ends)));
    this.#parts.log('warn', 'server logins orphaned', {
      worker,
      logins: dials.length,
      visible,
      most_ms: longest + this.#times.graceMs,
    });
  }

  #logEnd(worker: number, counts: Record<Verdict, number>, elapsedMs: number): void {
    const { gone, overdue, 'given up': givenUp } = counts;
    this.#parts.log(
      givenUp > 0 ? 'error' : 'info',
      givenUp > 0 ? 'orphaned server logins given up' : 'orphaned server logins ended',
      { worker, gone, overdue, still_there: givenUp, duration_ms: elapsedMs },
    );
  }
}

interface Look {
  readonly table: SocketTable | undefined;
  readonly shown: ReadonlySet<OrphanDial>;
}
