/**
 * The host names under which an HTTP server may be asked. A page in a browser can have its own name resolve to an address that
 * only this browser can reach, and would read the answers (DNS rebinding); its name arrives in the header `Host`.
 */
import { isIP } from 'node:net';
import { hostname } from 'node:os';

/**
 * Addresses, `localhost` and the name of this machine are always known: nobody else can have their own page under them.
 * `names`: further ones; `*.example.com` is every name below `example.com`, and `*` is every name.
 */
export function isKnownHost(header: string | undefined, names: readonly string[]): boolean {
  // Browsers always send it; health checks by HTTP/1.0 do not.
  if (!header) return true;
  const parts = /^(?:\[([\da-f:.]{2,45})\]|([^:]{1,253}))(?::\d{1,5})?$/i.exec(header);
  const host = (parts?.[1] ?? parts?.[2])?.toLowerCase();
  if (host === undefined) return false;
  if (isIP(host) !== 0) return true;
  return ['localhost', hostname(), ...names].some((name) => covers(name.toLowerCase(), host));
}

function covers(name: string, host: string): boolean {
  if (!name.startsWith('*')) return host === name;
  return name === '*' || (name.startsWith('*.') && host.endsWith(name.slice(1)));
}

/** True if only this machine can connect to this host. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || host === '::1' || /^127\.[\d.]{5,11}$/.test(host);
}
