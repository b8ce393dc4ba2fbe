/**
 * Handles the server connections of a worker that died. Their sockets are closed, so servers that wait for a query end at once;
 * busy ones are cancelled. A slot is free once its connection is closed: a living worker asks the server which of them still
 * exist. Where no worker can ask, a fixed time is waited. Every wait has a limit. `orphan-dials.ts` waits for logins.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectTransport, type DialOptions } from '../../net/connect-transport.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeCancelRequest } from '../../wire/startup-packet.js';
import type { PoolerLog } from '../log.js';
import type { DialNote, ServerNote } from '../messages/messages.js';
import type { ServerPlace } from '../messages/server-questions.js';
import {
  type DialTimes,
  type OrphanDial,
  OrphanDials,
  type OrphanDialsParts,
  usualDialTimes,
} from './orphan-dials.js';
import type { WorkerPoolProxy } from './worker-pool-proxy.js';

export interface OrphanCareParts extends OrphanDialsParts {
  readonly log: PoolerLog;
  /** TLS as the pools of the database use it. */
  readonly tlsFor: (database: string) => DialOptions['tls'];
  /** The processes among these that still exist on the server; undefined where no worker can ask now. */
  readonly whichAreThere: (
    place: ServerPlace,
    processIds: readonly number[],
  ) => Promise<ReadonlySet<number> | undefined>;
}

/** Times, which tests change. */
export interface CareTimes {
  /** Time until a slot is free whose connection had no known socket. */
  readonly unknownMs: number;
  /** Time until a slot of a known connection is free where no worker can ask. */
  readonly blindMs: number;
  /** Connections that still exist after this time are given up. */
  readonly longestMs: number;
  readonly betweenLooksMs: number;
  readonly dials: DialTimes;
}

const usualTimes: CareTimes = {
  unknownMs: 1_000,
  blindMs: 2_000,
  longestMs: 60_000,
  betweenLooksMs: 50,
  dials: usualDialTimes,
};
const cancelTimeoutMs = 2_000;
const mostCancelsAtOnce = 16;

interface Orphan {
  readonly pool: WorkerPoolProxy;
  readonly note: ServerNote;
}

export class OrphanCare {
  readonly #parts: OrphanCareParts;
  readonly #times: CareTimes;
  readonly #dials: OrphanDials;
  /** Slots without a known connection, by pool. */
  readonly #unknown = new Map<WorkerPoolProxy, number>();
  /** Connections that are not closed yet. */
  #waiting = 0;

  constructor(parts: OrphanCareParts, times: CareTimes = usualTimes) {
    this.#parts = parts;
    this.#times = times;
    this.#dials = new OrphanDials(parts, times.dials);
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Takes the pools of a worker that has ended, with their slots. Resolves when all slots are free. */
  async take(worker: number, pools: readonly WorkerPoolProxy[]): Promise<void> {
    const began = Date.now();
    const dials = pools.flatMap((pool) => Array.from(pool.dials.values(), (note) => ({ pool, note })));
    const orphans = [
      ...pools.flatMap((pool) => Array.from(pool.servers.values(), (note) => ({ pool, note }))),
      ...dials.flatMap(knownOf),
    ];
    const underWay = dials.filter(({ note }) => note.key === undefined);
    this.#waiting += orphans.length + underWay.length;
    const cancels = this.#cancelAll(orphans);
    await Promise.all([
      this.#freeUnknown(pools),
      this.#freeWhenGone(orphans, cancels, began, worker),
      this.#dials.wait(worker, underWay, (over) => this.#free(over)),
    ]);
  }

  async #freeUnknown(pools: readonly WorkerPoolProxy[]): Promise<void> {
    for (const pool of pools)
      this.#unknown.set(pool, Math.max(0, pool.held - pool.servers.size - pool.dials.size));
    if (pools.some((pool) => this.#unknown.get(pool) !== 0))
      await sleep(this.#times.unknownMs, undefined, { ref: false });
    for (const pool of pools) {
      this.#unknown.delete(pool);
      this.#settle(pool);
    }
  }

  async #freeWhenGone(
    orphans: readonly Orphan[],
    cancels: Promise<void>,
    began: number,
    worker: number,
  ): Promise<void> {
    const { blindMs, longestMs, betweenLooksMs } = this.#times;
    let left = [...orphans];
    let canAsk = false;
    let areCancelled = false;
    void cancels.then(() => {
      areCancelled = true;
    });
    while (left.length > 0) {
      const look = await this.#look(left);
      canAsk ||= look.canAsk;
      this.#free(left.filter((orphan) => !look.left.includes(orphan)));
      left = look.left;
      const elapsedMs = Date.now() - began;
      const isBlind = !canAsk && areCancelled && elapsedMs >= blindMs;
      if (left.length > 0 && (isBlind || elapsedMs >= longestMs)) {
        this.#parts.log(
          canAsk ? 'error' : 'info',
          canAsk ? 'orphaned server connections given up' : 'orphaned server connections taken for closed',
          {
            ...{ worker, connections: left.length, duration_ms: elapsedMs },
            reason: canAsk ? 'too_long' : 'server_not_asked',
          },
        );
        this.#free(left);
        return;
      }
      if (left.length > 0) await sleep(betweenLooksMs, undefined, { ref: false });
    }
  }

  #free(orphans: readonly (Orphan | OrphanDial)[]): void {
    this.#waiting -= orphans.length;
    for (const { pool, note } of orphans) {
      pool.servers.delete(note.server);
      pool.dials.delete(note.server);
    }
    for (const pool of new Set(orphans.map(({ pool }) => pool))) this.#settle(pool);
  }

  /** Lowers the held slots of a pool to the number of connections that may exist. */
  #settle(pool: WorkerPoolProxy): void {
    const left = pool.servers.size + pool.dials.size + (this.#unknown.get(pool) ?? 0);
    if (pool.held > left) pool.released(pool.held - left);
  }

  /** Which of them still exist, as far as that can be found out. */
  async #look(orphans: readonly Orphan[]): Promise<{ readonly left: Orphan[]; readonly canAsk: boolean }> {
    const byPlace = new Map<string, Orphan[]>();
    for (const orphan of orphans) {
      const { host, port, path } = orphan.note;
      const key = JSON.stringify([host, port, path]);
      byPlace.set(key, [...(byPlace.get(key) ?? []), orphan]);
    }
    let canAsk = true;
    const left = await Promise.all(
      Array.from(byPlace.values(), async (there) => {
        const { host, port, path } = (there[0] as Orphan).note;
        const processIds = there.map(({ note }) => note.processId);
        const found = await this.#parts.whichAreThere({ host, port, path }, processIds);
        if (found === undefined) canAsk = false;
        return found === undefined ? there : there.filter(({ note }) => found.has(note.processId));
      }),
    );
    return { left: left.flat(), canAsk };
  }

  /** Cancels a few at a time. Whether a request arrived shows in the server's answer to the later question. */
  async #cancelAll(orphans: readonly Orphan[]): Promise<void> {
    const queue = [...orphans];
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) await this.#cancel(next);
    };
    await Promise.all(Array.from({ length: mostCancelsAtOnce }, work));
  }

  async #cancel({ pool, note }: Orphan): Promise<void> {
    const { host, port, path, processId, secretKey } = note;
    try {
      const writer = new MessageWriter();
      writeCancelRequest(writer, processId, Buffer.from(secretKey));
      const request = writer.take();
      const tls = this.#parts.tlsFor(pool.database);
      const transport = await connectTransport({ host, port, path, tls, timeoutMs: cancelTimeoutMs });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => transport.destroy(), cancelTimeoutMs).unref();
        transport.listener = {
          bytesCame() {},
          drained() {},
          ended: () => transport.destroy(),
          closed() {
            clearTimeout(timer);
            resolve();
          },
        };
        transport.start();
        transport.send(request, 0, request.length);
      });
    } catch {
      // A server that can't be reached has nothing to cancel, or ends its connections itself.
    }
  }
}

/** A login that was complete, although its connection was not in use yet. */
function knownOf({ pool, note }: OrphanDial): Orphan[] {
  const { key, ends: _, ...rest } = note satisfies DialNote;
  return key === undefined ? [] : [{ pool, note: { ...rest, ...key } }];
}
