/** SHOW CONFIG, MEM, STATE and VERSION, PEERS and PEER_POOLS, and an empty DNS cache, which only PgBouncer has. */
import { type ConsoleSetting, consoleSettings } from '../config/console-settings.js';
import type { Peer } from '../config/peers.js';
import { versionText } from './driver-settings.js';
import type { PoolerView, RunState, WorkerRecord } from './pooler-view.js';
import { empty, int4, int8, type Show, showEach, showNothing, text, timeText } from './show.js';

export const config: Show = showEach<ConsoleSetting>(
  [
    text('key', ({ key }) => key),
    text('value', ({ value }) => value),
    text('default', (setting) => setting.default),
    text('changeable', ({ changeable }) => (changeable ? 'yes' : 'no')),
  ],
  (view) => consoleSettings(view.config),
);

const kilobyte = 1_024;

interface Memory {
  readonly name: string;
  /** In bytes. */
  readonly used: number;
  readonly all: number;
}

/** In units of a kilobyte; only the last column is in bytes. */
export const mem: Show = showEach<Memory>(
  [
    text('name', ({ name }) => name),
    int4('size', () => kilobyte),
    int4('used', ({ used }) => Math.ceil(used / kilobyte)),
    int4('free', ({ used, all }) => Math.ceil(all / kilobyte) - Math.ceil(used / kilobyte)),
    int4('memtotal', ({ all }) => kilobyte * Math.ceil(all / kilobyte)),
  ],
  (view) => memoryOf(view.memory()),
);

function memoryOf({ heapUsed, heapTotal, external, arrayBuffers, rss }: NodeJS.MemoryUsage): Memory[] {
  return [
    { name: 'heap', used: heapUsed, all: heapTotal },
    { name: 'external', used: external, all: external },
    { name: 'array_buffers', used: arrayBuffers, all: arrayBuffers },
    { name: 'resident', used: rss, all: rss },
  ];
}

/** Processes that serve clients: one, unless more are configured. */
export const workers: Show = showEach<WorkerRecord>(
  [
    int4('worker', ({ number }) => number),
    int4('pid', ({ processId }) => processId),
    text('state', (worker) => worker.state),
    int4('clients', ({ clients }) => clients),
    int4('servers', ({ servers }) => servers),
    int4('restarts', ({ restarts }) => restarts),
    text('started', ({ startedAt }) => timeText(startedAt)),
    int8('cpu_ms', ({ cpuMs }) => cpuMs),
    int8('memory', ({ memoryBytes }) => memoryBytes),
  ],
  (view) => view.workers(),
);

const states: readonly RunState[] = ['active', 'paused', 'suspended'];

export const state: Show = showEach<{ readonly one: RunState; readonly view: PoolerView }>(
  [text('key', ({ one }) => one), text('value', ({ one, view }) => (view.state === one ? 'yes' : 'no'))],
  (view) => states.map((one) => ({ one, view })),
);

/** Tools look here for PgBouncer's version, to know what to expect. */
export const version: Show = showEach<string>([text('version', versionText)], (view) => [view.version]);

interface ShownPeer extends Peer {
  readonly id: number;
  /** Size for peers without one of their own. */
  readonly usualSize: number;
}

function peersOf({ config: { listen, pooling } }: PoolerView): ShownPeer[] {
  return Array.from(listen.peers, ([id, peer]) => ({ ...peer, id, usualSize: pooling.poolSize })).sort(
    (one, other) => one.id - other.id,
  );
}

export const peers: Show = showEach<ShownPeer>(
  [
    int4('peer_id', ({ id }) => id),
    text('host', ({ host }) => host),
    // A text, as with PgBouncer.
    text('port', ({ port }) => String(port)),
    int4('pool_size', ({ poolSize, usualSize }) => poolSize ?? usualSize),
  ],
  peersOf,
);

export const peerPools: Show = showEach<ShownPeer>(
  [
    int4('peer_id', ({ id }) => id),
    int4('cl_active_cancel_req', () => 0),
    int4('cl_waiting_cancel_req', () => 0),
    int4('sv_active_cancel', () => 0),
    int4('sv_login', () => 0),
  ],
  peersOf,
);

export const dnsHosts: Show = showNothing([
  empty('hostname', 'text'),
  empty('ttl', 'int8'),
  empty('addrs', 'text'),
]);

export const dnsZones: Show = showNothing([
  empty('zonename', 'text'),
  empty('serial', 'int8'),
  empty('count', 'int4'),
]);
