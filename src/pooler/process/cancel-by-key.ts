/** Cancel requests of clients: to a client of this process, to another process of this pooler, or to a peer. */
import { setTimeout } from 'node:timers/promises';
import type { DialTls } from '../../net/connect-transport.js';
import { TlsContext } from '../../net/tls-context.js';
import { systemClock } from '../../runtime/system.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { keyForPeer, peerOfKey } from '../clients/peer-keys.js';
import type { Peer } from '../config/peers.js';
import { sendCancel } from '../servers/canceller.js';
import type { PendingClient } from './pending-clients.js';
import type { PoolerState } from './pooler-state.js';

/** TLS for cancel requests to peers: none, since the poolers are next to each other, and a key can only cancel. */
const noTls: DialTls = { mode: 'disable', context: new TlsContext('client', {}) };
const longestCancelMs = 60_000;
const shortestPauseMs = 100;

/** Resolves when the client can be let go: the request is done, or has taken longer than `cancelWaitTimeout`. */
export async function serveCancelRequest(
  pooler: PoolerState,
  key: BackendKey,
  pending: PendingClient,
): Promise<void> {
  pending.cancelling = 'passed_on';
  const { cancelWaitTimeout } = pooler.config.timeouts;
  const isDone = new AbortController();
  const { signal } = isDone;
  // Started before the request, whose connection has the same limit.
  const timedOut =
    cancelWaitTimeout > 0 ? setTimeout(cancelWaitTimeout, true, { ref: false, signal }) : undefined;
  const cancelled = cancelByKey(pooler, key, pending).then(() => false);
  const isTooLate = await Promise.race(timedOut === undefined ? [cancelled] : [timedOut, cancelled]);
  timedOut?.catch(() => {});
  isDone.abort();
  if (isTooLate) pooler.connections.disconnected(pending, 'cancel_wait_timeout');
}

/** Cancels by a key of this process or another one. */
async function cancelByKey(pooler: PoolerState, key: BackendKey, pending: PendingClient): Promise<void> {
  const { keys, shared, config } = pooler;
  const own = keys.own(key);
  const client = keys.find(own);
  if (client !== undefined) await client.cancel();
  else if (config.listen.peerId > 0 && peerOfKey(key) !== config.listen.peerId)
    await cancelAtPeer(pooler, key, pending);
  else await shared?.cancelElsewhere(own);
}

/** Resolves when the pooler that issued the key has hung up, which it does when it is done, or could not be reached in time. */
async function cancelAtPeer(pooler: PoolerState, key: BackendKey, pending: PendingClient): Promise<void> {
  const { config, peerRequests } = pooler;
  const peerId = peerOfKey(key);
  const peer = config.listen.peers.get(peerId);
  const next = keyForPeer(key);
  if (peer === undefined || next === undefined) return;
  const { poolSize = config.pooling.poolSize } = peer;
  const underWay = peerRequests.get(peerId) ?? 0;
  // Limit the connections to a peer, however many requests a client sends.
  if (underWay >= 2 * poolSize) return;
  peerRequests.set(peerId, underWay + 1);
  pending.cancelling = 'waiting';
  try {
    await sendToPeer(pooler, peer, next, pending);
  } catch (error) {
    pooler.log('warn', 'cancel request not passed on', { peer: peerId, error: String(error) });
  } finally {
    peerRequests.set(peerId, (peerRequests.get(peerId) ?? 1) - 1);
  }
}

/** As with PgBouncer, a request waits for a peer that can't be reached, which may be starting again. */
async function sendToPeer(
  pooler: PoolerState,
  { host, port }: Peer,
  key: BackendKey,
  pending: PendingClient,
): Promise<void> {
  const { pooling, timeouts } = pooler.config;
  const limitMs = timeouts.cancelWaitTimeout || longestCancelMs;
  const deadline = systemClock.now() + limitMs;
  const at = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  for (;;) {
    const timeoutMs = Math.max(1, deadline - systemClock.now());
    try {
      await sendCancel({ ...at, port, tls: noTls, timeoutMs }, key, () => {
        pending.cancelling = 'passed_on';
        return true;
      });
      return;
    } catch (error) {
      const pauseMs = Math.max(shortestPauseMs, pooling.serverLoginRetry);
      if (pooler.isShuttingDown || systemClock.now() + pauseMs >= deadline) throw error;
      await setTimeout(pauseMs, undefined, { ref: false });
    }
  }
}
