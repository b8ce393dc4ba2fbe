/** Takes an IAM token apart, and refuses all that is not written exactly as AWS's signers write it. */
import { algorithm, encode, type SignedRequest } from './signature.js';

export interface TokenParts extends SignedRequest {
  readonly action: string;
  readonly accessKeyId: string;
  readonly sessionToken: string | undefined;
  /** Milliseconds since 1970. */
  readonly signedAt: number;
  readonly lifeSeconds: number;
  readonly signature: string;
}

/** A refused token; the hint is in the words of AWS. */
export interface Refused {
  readonly hint: string;
}

const longestToken = 16 * 1024;
const longestLifeSeconds = 604_800;

const required = [
  'Action',
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Date',
  'X-Amz-Expires',
  'X-Amz-Signature',
  'X-Amz-SignedHeaders',
];
const known = new Set([...required, 'X-Amz-Security-Token']);

export function readToken(token: string): TokenParts | Refused {
  if (Buffer.byteLength(token) > longestToken)
    return { hint: `The token is longer than ${longestToken} bytes.` };
  const [, host, query] = /^([A-Za-z0-9.:[\]-]{1,255})\/\?([\x21-\x7e]+)$/.exec(token) ?? [];
  if (host === undefined || query === undefined)
    return { hint: 'The token is not a presigned request: host/?Action=...' };
  const all = readQuery(query);
  if (!(all instanceof Map)) return all;
  const missing = required.find((name) => !all.has(name));
  if (missing !== undefined)
    return {
      hint: `AWS query-string parameters must include '${missing}'. Re-examine the query-string parameters.`,
    };

  const parameters = new Map(all);
  parameters.delete('X-Amz-Signature');
  const of = (name: string): string => all.get(name) ?? '';
  if (of('X-Amz-Algorithm') !== algorithm)
    return { hint: `Unsupported AWS 'algorithm': '${of('X-Amz-Algorithm')}'.` };
  if (of('X-Amz-SignedHeaders') !== 'host')
    return { hint: "'host' must be the only 'SignedHeader' in the AWS query string." };
  if (!/^[0-9a-f]{64}$/.test(of('X-Amz-Signature')))
    return { hint: "'X-Amz-Signature' is not a signature of 64 hexadecimal digits." };
  const credential = /^(\w{1,128})((?:\/[\w-]+){4})$/.exec(of('X-Amz-Credential'));
  if (credential === null)
    return {
      hint: `Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '${of('X-Amz-Credential')}'`,
    };
  const signedAt = readTime(of('X-Amz-Date'));
  if (signedAt === undefined)
    return { hint: `Date must be in ISO-8601 'basic format'. Got '${of('X-Amz-Date')}'.` };
  if (!/^\d{1,9}$/.test(of('X-Amz-Expires'))) return { hint: 'X-Amz-Expires should be a number' };
  const lifeSeconds = Number(of('X-Amz-Expires'));
  if (lifeSeconds > longestLifeSeconds)
    return {
      hint:
        'X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than ' +
        `${longestLifeSeconds} seconds`,
    };
  return {
    host,
    parameters,
    time: of('X-Amz-Date'),
    scope: (credential[2] ?? '').slice(1).split('/'),
    action: of('Action'),
    accessKeyId: credential[1] ?? '',
    sessionToken: all.get('X-Amz-Security-Token'),
    signedAt,
    lifeSeconds,
    signature: of('X-Amz-Signature'),
  };
}

/** Refuses any text that is not in canonical form, so that no two tokens mean the same. */
function readQuery(query: string): Map<string, string> | Refused {
  const parameters = new Map<string, string>();
  for (const part of query.split('&')) {
    const [name = '', value, ...more] = part.split('=');
    if (!known.has(name)) return { hint: `The token has the unknown query parameter '${shorten(name)}'.` };
    if (parameters.has(name)) return { hint: `The token has the query parameter '${name}' twice.` };
    const decoded = decode(value ?? '');
    if (decoded === undefined || more.length > 0 || encode(decoded) !== value)
      return { hint: `The query parameter '${name}' of the token is not encoded as RFC 3986 has it.` };
    parameters.set(name, decoded);
  }
  return parameters;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function readTime(text: string): number | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  const time = Date.UTC(year, month - 1, day, hour, minute, second);
  // Not the 31st of February.
  return showTime(time) === text ? time : undefined;
}

/** `20261115T010540Z` */
export function showTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/[-:]|\.\d+/g, '');
}

/** Bounds a client's text that is repeated in an answer. */
function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}
