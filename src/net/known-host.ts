/**
 * The host names under which a server of this machine alone may be asked. A page in a browser can have its own name
 * resolve to the loopback, and would read the answers; its name arrives in the header `Host`.
 */
import { isIP } from 'node:net';

/** `listenHost`: where it listens. Where others can reach it anyway, every name is good. */
export function isKnownHost(header: string | undefined, listenHost: string): boolean {
  // Browsers always send it; health checks by HTTP/1.0 do not.
  if (!isLoopback(listenHost) || !header) return true;
  const name = /^(?:\[([\da-f:.]{2,45})\]|([^:]{1,253}))(?::\d{1,5})?$/i.exec(header);
  const host = name?.[1] ?? name?.[2];
  return (
    host !== undefined && (isIP(host) !== 0 || host.toLowerCase() === 'localhost' || host === listenHost)
  );
}

/** True if only this machine can connect to this host. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || host === '::1' || /^127\.[\d.]{5,11}$/.test(host);
}
