/** Verifies IAM tokens as Aurora DSQL does: who signed, for which host, Region and user, and when. */
import type { Accounts, ConnectAction, Identity } from './accounts.js';
import { isSameSecret, signatureOf } from './signature.js';
import { type Refused, readToken, showTime, type TokenParts } from './token-parts.js';

export interface TokenExpectations {
  /** The names that the client may have connected to: the one of its SNI, or an address. */
  readonly hosts: readonly string[];
  readonly region: string;
  readonly user: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly accounts: Accounts;
}

/** A token that is good. */
export interface VerifiedToken {
  readonly identity: Identity;
  readonly action: ConnectAction;
}

const service = 'dsql';
const terminator = 'aws4_request';
const skewMinutes = 5;
const minuteMs = 60_000;

/** The hint is the server's answer to a bad token; it never has a secret in it. */
export function verifyToken(token: string, expected: TokenExpectations): VerifiedToken | Refused {
  const parts = readToken(token);
  if ('hint' in parts) return parts;
  const hint = refuseTime(parts, expected.now) ?? refuseScope(parts, expected.region);
  if (hint !== undefined) return { hint };

  const found = expected.accounts.find(parts.accessKeyId);
  const isKnown = found !== undefined && isSameSecret(found.key.sessionToken ?? '', parts.sessionToken ?? '');
  if (!isKnown || (found.key.sessionToken === undefined) !== (parts.sessionToken === undefined))
    return { hint: 'The security token included in the request is invalid.' };
  const { identity, key } = found;
  if (!isSameSecret(signatureOf(parts, key.secretAccessKey), parts.signature))
    return {
      hint:
        'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key ' +
        'and signing method. Consult the service documentation for details.',
    };
  if (key.expiration !== undefined && expected.now >= key.expiration.getTime())
    return { hint: 'The security token included in the request is expired' };
  const host = parts.host.toLowerCase();
  if (!expected.hosts.some((name) => name.toLowerCase() === host))
    return {
      hint: `The token is for the host ${parts.host}, and the connection is to ${expected.hosts.join(', ')}.`,
    };

  const action = actionFor(expected.user);
  if (parts.action !== action)
    return { hint: `Wrong user to action mapping. user: ${expected.user}, action: ${parts.action}` };
  return { identity, action };
}

function actionFor(user: string): ConnectAction {
  return user === 'admin' ? 'DbConnectAdmin' : 'DbConnect';
}

function refuseTime({ time, signedAt, lifeSeconds }: TokenParts, now: number): string | undefined {
  const earliest = now - lifeSeconds * 1_000;
  if (signedAt <= earliest)
    return `Signature expired: ${time} is now earlier than ${showTime(earliest)} (${showTime(now)} - ${showLife(lifeSeconds)})`;
  const latest = now + skewMinutes * minuteMs;
  if (signedAt > latest)
    return `Signature not yet current: ${time} is still later than ${showTime(latest)} (${showTime(now)} + ${skewMinutes} min.)`;
  return undefined;
}

function showLife(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min.` : `${seconds} s.`;
}

function refuseScope({ scope, time }: TokenParts, region: string): string | undefined {
  const [date, signedRegion, signedService, end] = scope;
  if (signedRegion !== region) return `Credential should be scoped to a valid region, not '${signedRegion}'.`;
  if (signedService !== service) return `Credential should be scoped to correct service: '${service}'.`;
  if (end !== terminator)
    return `Credential should be scoped with a valid terminator: '${terminator}', not '${end}'.`;
  const day = time.slice(0, 8);
  if (date !== day)
    return `Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '${date}' != '${day}', from '${time}'.`;
  return undefined;
}
