/** `headgate dsql-local token`: a token for psql and other clients, made without AWS's tools. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { presign } from '../dsql/presigned-request.js';
import type { AwsCredentials } from '../dsql/signer.js';
import type { Environment } from '../kernel/environment.js';
import { readDuration } from './dsql-local-options.js';
import { readOptions } from './options.js';
import { UsageError } from './usage-error.js';

const kinds = { host: 'text', region: 'text', user: 'text', data: 'text', expires: 'text' } as const;

/** AWS signs for no longer than a week. */
const longestSeconds = 604_800;

export function makeToken(args: readonly string[], environment: Environment, now: number): string {
  const { values, positionals } = readOptions(args, kinds);
  if (positionals.length > 0) throw new UsageError(`token takes options only, not '${positionals[0]}'`);
  const { host = '127.0.0.1', user = 'admin', data, expires = '15m' } = values;
  const lifeSeconds = Math.floor(readDuration('expires', expires) / 1_000);
  if (lifeSeconds < 1 || lifeSeconds > longestSeconds)
    throw new UsageError(`--expires must be between 1s and 7d, not '${expires}'`);
  return presign({
    service: 'dsql',
    region: values.region ?? regionIn(host) ?? environment['AWS_REGION'] ?? 'us-east-1',
    host,
    parameters: { Action: user === 'admin' ? 'DbConnectAdmin' : 'DbConnect' },
    credentials: data === undefined ? keysOf(environment) : keysIn(data),
    signedAt: now,
    lifeSeconds,
  });
}

function regionIn(host: string): string | undefined {
  return /^[a-z0-9]{26}\.dsql[a-z0-9-]*\.([a-z0-9-]+)\.on\.aws$/.exec(host)?.[1];
}

function keysOf(environment: Environment): AwsCredentials {
  const accessKeyId = environment['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY'];
  if (!accessKeyId || !secretAccessKey)
    throw new UsageError(
      'token needs the access key that headgate dsql-local has printed: in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ' +
        'or with --data and the folder that the stand-in was started with',
    );
  return { accessKeyId, secretAccessKey, sessionToken: environment['AWS_SESSION_TOKEN'] || undefined };
}

function keysIn(folder: string): AwsCredentials {
  const file = join(folder, 'access-key.json');
  try {
    const { accessKeyId, secretAccessKey } = JSON.parse(readFileSync(file, 'utf8')) as AwsCredentials;
    return { accessKeyId, secretAccessKey };
  } catch (error) {
    throw new UsageError(
      `--data: can't read ${file}: ${(error as Error).message}. Start headgate dsql-local --data ${folder} first.`,
    );
  }
}
