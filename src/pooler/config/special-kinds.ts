/** Kinds of values for few options: files, secrets, file modes, TLS versions, sizes and addresses. */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Misread, show } from './config-problems.js';
import { HiddenText, hidden } from './hidden-text.js';
import { iniInteger, isMapping, itemsOf, type Kind, type ReadContext, textOf } from './kind.js';
import { integer, text } from './kinds.js';

const longestSecret = 65_536;

/** The path of a file, absolute. */
export const path: Kind<string | undefined> = {
  ...text,
  name: 'file',
  placeholder: 'FILE',
  fromData: (value, context) => inFolder(text.fromData(value, context), context),
  fromText: (value, context) => inFolder(text.fromText(value, context), context),
};

function inFolder(name: string | undefined, { folder }: ReadContext): string | undefined {
  return name === undefined ? undefined : resolve(folder, name);
}

/** A text, or `{ file: path }`, or `{ env: NAME }`. Messages never contain it. */
export const secret: Kind<HiddenText | undefined> = {
  name: 'secret',
  placeholder: 'TEXT',
  fromData(value, context) {
    if (typeof value === 'string') return value === '' ? undefined : new HiddenText(value);
    const keys = isMapping(value) ? Object.keys(value) : [];
    const [key] = keys;
    const name = isMapping(value) && key !== undefined ? value[key] : undefined;
    if (keys.length !== 1 || typeof name !== 'string' || name === '' || (key !== 'file' && key !== 'env'))
      throw new Misread('must be a text in quotes, { file: PATH } or { env: NAME }');
    return key === 'file' ? secretInFile(name, context) : secretInVariable(name, context);
  },
  fromText: (value) => (value === '' ? undefined : new HiddenText(value)),
  iniToData: (value) => value,
  show: (value) => (value === undefined ? 'none' : hidden),
  toIni: (value) => (value === undefined ? '' : hidden),
};

function secretInFile(name: string, context: ReadContext): HiddenText {
  const file = resolve(context.folder, name);
  if (!context.readsFiles) return new HiddenText('');
  try {
    if (statSync(file).size > longestSecret) throw new Error(`it is longer than ${longestSecret} bytes`);
    // Editors end a file with a line break, which is not part of the secret.
    const content = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (content === '') throw new Error('it is empty');
    return new HiddenText(content);
  } catch (error) {
    throw new Misread(`can't be read from ${file}: ${(error as Error).message}`);
  }
}

function secretInVariable(name: string, { environment, readsFiles }: ReadContext): HiddenText {
  const value = environment[name];
  if (value === undefined && !readsFiles) return new HiddenText('');
  if (value === undefined || value === '')
    throw new Misread(`is to be in the variable ${name}, which is not set`);
  return new HiddenText(value);
}

const longestPort = 65_535;
const onePort = integer({ min: 1, max: longestPort });

/** A port, or a list with one for each host. */
export const ports: Kind<number | readonly number[]> = {
  name: 'integer or list',
  placeholder: 'N',
  fromData: (value, context) =>
    Array.isArray(value)
      ? manyPorts(value.map((item) => onePort.fromData(item, context)))
      : onePort.fromData(value, context),
  fromText: (value, context) => manyPorts(itemsOf(value).map((item) => onePort.fromText(item, context))),
  iniToData: (value) => manyPorts(itemsOf(value).map(iniInteger)),
  show: (value) => [value].flat().join(', '),
  toIni: (value) => [value].flat().join(','),
};

function manyPorts(found: readonly number[]): number | readonly number[] {
  const [first, ...others] = found;
  if (first === undefined) throw new Misread(`must be a port from 1 to ${longestPort}, or a list of them`);
  return others.length === 0 ? first : Object.freeze([...found]);
}

/** Port of the host at this place of the list. */
export function portOf(port: number | readonly number[], at: number): number {
  return typeof port === 'number' ? port : (port[at] ?? (port[0] as number));
}

/** Octal, as with `chmod`. */
export const fileMode: Kind<number> = {
  name: 'file mode',
  placeholder: 'MODE',
  fromData(value, context) {
    if (typeof value === 'number')
      throw new Misread("must be a text such as '0770': a number may be read as decimal");
    return fileMode.fromText(textOf(value), context);
  },
  fromText(value) {
    if (/^0?o?[0-7]{3,4}$/.test(value)) return Number.parseInt(value.replace(/^0?o/, ''), 8);
    throw new Misread(`must be an octal mode such as 0770, not ${show(value)}`);
  },
  iniToData: (value) => `0${iniInteger(value).toString(8)}`,
  show: (value) => `0${value.toString(8)}`,
  toIni: (value) => `0${value.toString(8)}`,
};

const tlsVersions = ['tlsv1.0', 'tlsv1.1', 'tlsv1.2', 'tlsv1.3'] as const;
const nodeNames = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const;

/** Index of the first version that each shortcut includes; all later versions are included. */
const shortcuts: ReadonlyMap<string, number> = new Map([
  ['all', 0],
  ['legacy', 0],
  ['secure', 2],
]);

export interface TlsVersions {
  readonly min: (typeof nodeNames)[number];
  readonly max: (typeof nodeNames)[number];
}

/** PgBouncer's shortcuts, or a list of versions. */
export const tlsProtocols: Kind<TlsVersions> = {
  name: 'TLS versions',
  placeholder: 'A,B',
  fromData: (value) => versionsOf(Array.isArray(value) ? value.map(textOf) : textOf(value).split(/[,:]/)),
  fromText: (value) => versionsOf(value.split(/[,:]/)),
  iniToData: (value) => itemsOf(value.replaceAll(':', ',')),
  show({ min, max }) {
    return tlsVersions.slice(nodeNames.indexOf(min), nodeNames.indexOf(max) + 1).join(', ');
  },
  toIni: (value) => tlsProtocols.show(value),
};

function versionsOf(items: readonly string[]): TlsVersions {
  const allowed = tlsVersions.map(() => false);
  for (const item of items.map((name) => name.trim().toLowerCase()).filter(Boolean)) {
    const isTaken = item.startsWith('!');
    const name = isTaken ? item.slice(1) : item;
    const from = shortcuts.get(name);
    const index = tlsVersions.indexOf(name as (typeof tlsVersions)[number]);
    if (from === undefined && index === -1)
      throw new Misread(`must be secure, all, or some of ${tlsVersions.join(', ')}, not ${show(item)}`);
    for (let i = from ?? index; i <= (from === undefined ? index : 3); i++) allowed[i] = !isTaken;
  }
  const [first, last] = [allowed.indexOf(true), allowed.lastIndexOf(true)];
  if (first === -1) throw new Misread('allows no version of TLS');
  if (allowed.slice(first, last).includes(false))
    throw new Misread('must have no gap: what is between two allowed versions is allowed, too');
  return Object.freeze({ min: nodeNames[first] as 'TLSv1', max: nodeNames[last] as 'TLSv1' });
}

const bytesPer: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1_024,
  mb: 1_048_576,
  gb: 1_073_741_824,
};

/** Bytes: a number, or a text such as `64MB`. */
export function size({ min, max }: { readonly min: number; readonly max: number }): Kind<number> {
  const read = (value: unknown): number => {
    const [, digits, unit = ''] = /^(\d{1,12}) ?([kmg]?b)?$/i.exec(String(value)) ?? [];
    const bytes = Number(digits) * (bytesPer[unit.toLowerCase()] ?? Number.NaN);
    if (bytes >= min && bytes <= max) return bytes;
    throw new Misread(`must be from ${min} to ${max} bytes, such as 64MB, not ${show(value)}`);
  };
  return {
    name: 'size',
    placeholder: 'SIZE',
    fromData: read,
    fromText: read,
    iniToData: iniInteger,
    show: String,
    toIni: String,
  };
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, `[::1]:9127`, or a port alone for this machine. */
export const endpoint: Kind<Endpoint | undefined> = {
  name: 'address',
  placeholder: 'HOST:PORT',
  fromData: (value, context) =>
    endpoint.fromText(typeof value === 'number' ? String(value) : textOf(value), context),
  fromText(value) {
    if (value === '' || value === 'none') return undefined;
    const [, inBrackets, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(value) ?? [];
    const port = Number(digits);
    if (!(port <= 65_535)) throw new Misread(`must be HOST:PORT, such as 127.0.0.1:9127, not ${show(value)}`);
    return Object.freeze({ host: inBrackets ?? plain ?? '127.0.0.1', port });
  },
  iniToData: (value) => value,
  show: (value) =>
    value === undefined
      ? 'none'
      : `${value.host.includes(':') ? `[${value.host}]` : value.host}:${value.port}`,
  toIni: (value) => (value === undefined ? '' : endpoint.show(value)),
};
