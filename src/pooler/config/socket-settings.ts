/** Converts socket settings of the configuration for the transport. */

import { type Endpoint, unixEndpoint } from '../../net/endpoint.js';
import type { KeepAlive, SocketTuning } from '../../net/socket-options.js';
import type { PoolerConfig } from './pooler-config.js';

/** The system's default; most have two hours. */
const usualIdleMs = 7_200_000;

export function keepAliveOf(tcp: PoolerConfig['tcp']): KeepAlive | undefined {
  const { keepAlive, keepAliveIdle, keepAliveInterval, keepAliveCount } = tcp;
  if (!keepAlive) return undefined;
  return {
    idleMs: keepAliveIdle || usualIdleMs,
    intervalMs: keepAliveInterval || undefined,
    probes: keepAliveCount || undefined,
  };
}

export function tuningOf({ userTimeout, socketBuffer }: PoolerConfig['tcp']): SocketTuning | undefined {
  if (userTimeout === 0 && socketBuffer === 0) return undefined;
  return { userTimeoutMs: userTimeout, bufferBytes: socketBuffer };
}

export function endpointsOf({ listen, unixSocket }: PoolerConfig): Endpoint[] {
  const { addresses, port } = listen;
  const endpoints: Endpoint[] = addresses.map((host) => ({ kind: 'tcp', host, port }));
  const { dir, mode } = unixSocket;
  // With port 0, the port is unknown until the socket listens.
  if (dir !== undefined && port !== 0) endpoints.push(unixEndpoint(dir, port, mode));
  return endpoints;
}
