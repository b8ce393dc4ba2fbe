/** Kinds of values of the export to OpenTelemetry: the collector's address, and the headers for it. */
import { Misread } from './config-problems.js';
import type { HiddenText } from './hidden-text.js';
import { type Kind, textOf } from './kind.js';
import { text } from './kinds.js';
import { secret } from './special-kinds.js';

/** An address without a path gets the one that collectors listen at. */
export const otlpEndpoint: Kind<string | undefined> = {
  ...text,
  name: 'URL',
  placeholder: 'URL',
  fromData: (value) => urlOf(textOf(value)),
  fromText: (value) => (value === 'none' ? undefined : urlOf(value)),
};

function urlOf(value: string): string | undefined {
  if (value === '') return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new Misread('must be the http or https address of a collector, such as http://127.0.0.1:4318');
  // An address is shown in the log and on the console.
  if (url.username !== '' || url.password !== '')
    throw new Misread('must have no password in it: put an authorization header into otlp_headers');
  if (url.pathname === '/') url.pathname = '/v1/metrics';
  return url.href;
}

/** Pairs as OTEL_EXPORTER_OTLP_HEADERS has them; never shown. */
export const otlpHeadersKind: Kind<HiddenText | undefined> = {
  ...secret,
  fromData: (value, context) => checked(secret.fromData(value, context)),
  fromText: (value, context) => checked(secret.fromText(value, context)),
};

function checked(headers: HiddenText | undefined): HiddenText | undefined {
  if (headers !== undefined) otlpHeaders(headers.reveal());
  return headers;
}

/** Throws if the text can't be read, without repeating it. */
export function otlpHeaders(pairs: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of pairs.split(',')) {
    if (pair.trim() === '') continue;
    const at = pair.indexOf('=');
    const name = pair.slice(0, at).trim();
    if (at === -1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw unreadable();
    try {
      headers[name.toLowerCase()] = decodeURIComponent(pair.slice(at + 1).trim());
    } catch {
      throw unreadable();
    }
    if (/[^\t\x20-\x7e]/.test(headers[name.toLowerCase()] as string)) throw unreadable();
  }
  return headers;
}

function unreadable(): Misread {
  return new Misread('must be pairs such as api-key=SECRET,tenant=one, with % where a sign is not of ASCII');
}
