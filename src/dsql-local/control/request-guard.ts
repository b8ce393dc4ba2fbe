/** Refuses requests of the control interface that come without the token, or through a browser from a page of somewhere else. */
import type { IncomingHttpHeaders } from 'node:http';
import { isSameSecret } from '../identity/signature.js';
import { type ControlAnswer, failure } from './control-requests.js';

const loopbackNames = new Set(['127.0.0.1', 'localhost', '[::1]']);

export function refuseRequest(
  { host, origin, authorization }: IncomingHttpHeaders,
  token: string,
): ControlAnswer | undefined {
  if (!isLoopback(`http://${host ?? ''}`))
    return failure(403, 'The Host header must name the loopback: 127.0.0.1, localhost or [::1].');
  if (origin !== undefined && !isLoopback(origin))
    return failure(403, 'Requests of web pages that are not on the loopback are refused.');
  const [, shown] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  if (shown === undefined || !isSameSecret(shown, token))
    return failure(401, "The token is missing or wrong. Send 'Authorization: Bearer <token>'.");
  return undefined;
}

function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password, pathname } = new URL(url);
  return (
    /^https?:$/.test(protocol) &&
    loopbackNames.has(hostname) &&
    username === '' &&
    password === '' &&
    pathname === '/'
  );
}
