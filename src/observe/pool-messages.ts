/**
 * Passes the messages that pools publish on to their listeners, each pool's to its own.
 *
 * One subscription serves all pools: with one for each, every message would be checked by all of them. A channel has a
 * subscription only while a listener wants its messages, since pools do less for a channel without subscribers.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { PoolChannels, PoolMessage } from '../runtime/channels.js';
import type { TransactionChannels } from '../runtime/transaction-channels.js';

type Channels = PoolChannels & TransactionChannels;
type ChannelName = keyof Channels;

/** Handlers for the messages of some channels. */
export type MessageHandlers = {
  readonly [Name in ChannelName]?: (message: Channels[Name]) => void;
};

type Handler = (message: never) => void;

class Switchboard {
  readonly #channel: ChannelName;
  readonly #handlers = new Map<object, Set<Handler>>();

  constructor(channel: ChannelName) {
    this.#channel = channel;
  }

  add(pool: object, handler: Handler): void {
    if (this.#handlers.size === 0) subscribe(this.#channel, this.#passOn);
    const ofPool = this.#handlers.get(pool) ?? new Set();
    this.#handlers.set(pool, ofPool.add(handler));
  }

  remove(pool: object, handler: Handler): void {
    const ofPool = this.#handlers.get(pool);
    if (ofPool?.delete(handler) !== true || ofPool.size > 0) return;
    this.#handlers.delete(pool);
    if (this.#handlers.size === 0) unsubscribe(this.#channel, this.#passOn);
  }

  readonly #passOn = (message: unknown): void => {
    for (const handle of this.#handlers.get((message as PoolMessage).pool) ?? []) handle(message as never);
  };
}

const switchboards = new Map<ChannelName, Switchboard>();

function switchboardOf(channel: ChannelName): Switchboard {
  const known = switchboards.get(channel);
  if (known !== undefined) return known;
  const made = new Switchboard(channel);
  switchboards.set(channel, made);
  return made;
}

/** Handles the messages of one pool until the function that it returns is called. */
export function onMessages(pool: object, handlers: MessageHandlers): () => void {
  // Each listener has its own functions, so that the same handlers can be used twice.
  const own = Object.entries(handlers).map(
    ([channel, handle]) => [channel as ChannelName, (message: never) => handle(message)] as const,
  );
  for (const [channel, handle] of own) switchboardOf(channel).add(pool, handle);
  return () => {
    for (const [channel, handle] of own) switchboardOf(channel).remove(pool, handle);
  };
}
