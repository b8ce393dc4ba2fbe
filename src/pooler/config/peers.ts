/** Other poolers at the same address, which a cancel request may be meant for. */
import { Misread, show } from './config-problems.js';
import { parsePairs } from './connection-string.js';
import { isMapping, itemsOf, type Kind } from './kind.js';

export interface Peer {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Limit of requests that are passed on at the same time. */
  readonly poolSize: number | undefined;
}

/** By each peer's own id. */
export type Peers = ReadonlyMap<number, Peer>;

export const noPeers: Peers = new Map();

/** The id is two bytes of every key, of which PgBouncer uses 14 bits. */
export const largestPeerId = 16_383;
const usualPort = 6_432;

export const peersKind: Kind<Peers> = {
  name: 'peers',
  placeholder: '1=HOST:PORT,2=DIR:PORT',
  fromData(value) {
    if (typeof value === 'string') return fromText(value);
    if (!isMapping(value)) throw new Misread(`must be a mapping of numbers to addresses, not ${show(value)}`);
    return new Map(Object.entries(value).map(([id, peer]) => [idOf(id), peerOfData(peer)]));
  },
  fromText,
  iniToData: (value) => value,
  show: (peers) => textOf(peers) || 'none',
  toIni: textOf,
};

function fromText(text: string): Peers {
  if (text === 'none') return noPeers;
  return new Map(
    itemsOf(text).map((item) => {
      const [, id = '', address = ''] = /^(\d+)\s*=\s*(.+)$/.exec(item) ?? [];
      return [idOf(id), peerOfText(address)];
    }),
  );
}

function textOf(peers: Peers): string {
  return Array.from(peers, ([id, { host, port }]) => `${id}=${host}:${port}`).join(', ');
}

function idOf(text: string): number {
  const id = Number(text);
  if (Number.isInteger(id) && id >= 1 && id <= largestPeerId) return id;
  throw new Misread(`the number of a peer is from 1 to ${largestPeerId}, not ${show(text)}`);
}

function peerOfData(value: unknown): Peer {
  if (typeof value === 'string') return peerOfText(value);
  if (isMapping(value)) return peerOf(value['host'], value['port'], value['poolSize']);
  throw new Misread(`the address of a peer is HOST:PORT, not ${show(value)}`);
}

/** `host:port`, or pgbouncer.ini's form: `host=... port=...`. */
function peerOfText(text: string): Peer {
  if (text.includes('=')) {
    const pairs = new Map(parsePairs(text));
    return peerOf(pairs.get('host'), pairs.get('port'), pairs.get('pool_size'));
  }
  const [, host, port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? [];
  return peerOf(host, port, undefined);
}

function peerOf(host: unknown, port: unknown = usualPort, poolSize: unknown = undefined): Peer {
  if (typeof host !== 'string' || host === '') throw new Misread('a peer needs a host');
  const numbers = [Number(port), poolSize === undefined ? 1 : Number(poolSize)] as const;
  if (!(numbers[0] >= 1 && numbers[0] <= 65_535 && Number.isInteger(numbers[0])))
    throw new Misread(`the port of a peer is from 1 to 65535, not ${show(port)}`);
  if (!(Number.isInteger(numbers[1]) && numbers[1] >= 0))
    throw new Misread(`the pool_size of a peer is a number, not ${show(poolSize)}`);
  return Object.freeze({ host, port: numbers[0], poolSize: poolSize === undefined ? undefined : numbers[1] });
}
