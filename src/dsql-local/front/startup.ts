/** The startup packet of a client that has TLS: which user, which settings, and what speaks against them. */

import type { Dialect } from '../../dialect/judgement.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeParameterStatus } from '../../wire/session-messages.js';
import type { StartupMessage } from '../../wire/startup-packet.js';
import { errorOf } from '../session/errors.js';

export interface Startup {
  readonly user: string;
  /** Settings for PostgreSQL's own startup packet. */
  readonly settings: ReadonlyMap<string, string>;
}

const database = 'postgres';
/** Settings that only DSQL has. PostgreSQL takes any with a prefix. */
const ownSettings: ReadonlySet<string> = new Set(['disable_sync_create_index']);

/** Settings that a client sees in a session that has changed none. */
const reported: ReadonlyMap<string, string> = new Map([
  ['application_name', ''],
  ['client_encoding', 'UTF8'],
  ['DateStyle', 'ISO, MDY'],
  ['default_transaction_read_only', 'off'],
  ['in_hot_standby', 'off'],
  ['integer_datetimes', 'on'],
  ['IntervalStyle', 'postgres'],
  ['is_superuser', 'off'],
  ['scram_iterations', '4096'],
  ['server_encoding', 'UTF8'],
  ['server_version', '16.15'],
  ['standard_conforming_strings', 'on'],
  ['TimeZone', 'UTC'],
]);

export function readStartup(
  { parameters }: StartupMessage,
  dialect: Dialect,
): Startup | { readonly error: ErrorFields } {
  const settings = new Map<string, string>();
  const user = parameters.get('user') ?? '';
  if (user === '') return fatal('28000', 'no PostgreSQL user name specified in startup packet');
  const name = parameters.get('database') ?? user;
  for (const [key, value] of [...parameters, ...optionsOf(parameters.get('options') ?? '')]) {
    if (key === 'user' || key === 'database' || key === 'options') continue;
    if (key === 'replication') return fatal('0A000', 'replication is not supported');
    const refusal = dialect.judgeParameter(key, value);
    if (refusal !== undefined) return { error: { ...errorOf(refusal), severity: 'FATAL' } };
    settings.set(ownSettings.has(key.toLowerCase()) ? `dsql.${key}` : key, value);
  }
  if (name !== database) return fatal('3D000', `database "${name}" does not exist`);
  return { user, settings };
}

/** Settings as clients usually send them, which PostgreSQL can't refuse; and what it makes of them, where it reports them. */
const certain: Readonly<Record<string, { readonly values: RegExp; readonly reported?: string }>> = {
  application_name: { values: /^[\x20-\x7e]{0,63}$/ },
  client_encoding: { values: /^'?(?:utf-?8|unicode)'?$/i, reported: 'UTF8' },
  datestyle: { values: /^iso(?:, ?mdy)?$/i, reported: 'ISO, MDY' },
  extra_float_digits: { values: /^-?\d$/ },
  timezone: { values: /^utc$/i, reported: 'UTC' },
};

/** True if PostgreSQL will take all settings: then its process can be started when the client asks for something. */
export function isCertain({ settings }: Startup): boolean {
  return [...settings].every(([name, value]) => certain[name.toLowerCase()]?.values.test(value) === true);
}

/** `-c name=value` and `--name=value`, with a backslash before a space that belongs to a value. */
function optionsOf(text: string): [string, string][] {
  const words = text.match(/(?:\\.|[^\s\\])+/g)?.map((word) => word.replace(/\\(.)/g, '$1')) ?? [];
  const options: [string, string][] = [];
  for (let at = 0; at < words.length; at += 1) {
    let word = words[at] as string;
    if (word === '-c') word = words[++at] ?? '';
    else if (word.startsWith('-c') || word.startsWith('--')) word = word.slice(2);
    const equals = word.indexOf('=');
    if (equals > 0) options.push([word.slice(0, equals).replaceAll('-', '_'), word.slice(equals + 1)]);
    else options.push([word, '']);
  }
  return options;
}

/** The ParameterStatus messages after the login. */
export function reportedSettings({ user, settings }: Startup): MessageWriter {
  const writer = new MessageWriter();
  for (const [name, value] of initialSettings(user, settings)) writeParameterStatus(writer, { name, value });
  return writer;
}

/** Reports the settings whose value in PostgreSQL is another than was reported. */
export function differingSettings({ user, settings }: Startup, actual: ReadonlyMap<string, string>): Buffer {
  const writer = new MessageWriter();
  const told = initialSettings(user, settings);
  for (const name of ['client_encoding', 'DateStyle', 'IntervalStyle', 'TimeZone', 'application_name']) {
    const value = actual.get(name);
    if (value !== undefined && value !== told.get(name)) writeParameterStatus(writer, { name, value });
  }
  return writer.take();
}

function initialSettings(user: string, settings: ReadonlyMap<string, string>): Map<string, string> {
  const all = new Map(reported);
  all.set('session_authorization', user);
  for (const [name, value] of settings) {
    const known = [...reported.keys()].find((key) => key.toLowerCase() === name.toLowerCase());
    const usual = certain[name.toLowerCase()];
    if (known !== undefined)
      all.set(known, usual?.values.test(value) === true ? (usual.reported ?? value) : value);
  }
  return all;
}

function fatal(code: string, message: string): { readonly error: ErrorFields } {
  return { error: { severity: 'FATAL', code, message } };
}
