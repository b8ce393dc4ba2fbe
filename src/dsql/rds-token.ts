/** Tokens for Amazon RDS and Aurora with IAM authentication, signed here. */
import type { Environment } from '../kernel/environment.js';
import { presign } from './presigned-request.js';
import { type AwsCredentials, type AwsCredentialsSource, usualCredentials } from './signer.js';
import type { SignedToken, TokenProvider, TokenRequest } from './token-cache.js';
import { type TimeOfDay, wallClock } from './wall-clock.js';

export interface RdsTokenOptions {
  /** Default: `AWS_ACCESS_KEY_ID` and its like where they are set, otherwise the AWS SDK's usual search. */
  readonly credentials?: AwsCredentialsSource | undefined;
  readonly environment?: Environment | undefined;
  readonly clock?: TimeOfDay | undefined;
}

/** RDS takes no token that is older, whatever it says. */
const lifeSeconds = 900;

/** The host of a request has its port: `db.abc.us-east-1.rds.amazonaws.com:5432`. */
export function rdsTokenProvider({
  credentials,
  environment = {},
  clock = wallClock,
}: RdsTokenOptions = {}): TokenProvider {
  const source = credentials ?? credentialsOf(environment) ?? usualCredentials();
  return async ({ host, region, user }: TokenRequest): Promise<SignedToken> => {
    const identity = typeof source === 'function' ? await source() : source;
    const signedAt = clock.now();
    const token = presign({
      service: 'rds-db',
      region,
      host,
      parameters: { Action: 'connect', DBUser: user },
      credentials: identity,
      signedAt,
      lifeSeconds,
    });
    const ends = [signedAt + lifeSeconds * 1_000, identity.expiration?.getTime() ?? Number.POSITIVE_INFINITY];
    return { token, expiresAt: new Date(Math.min(...ends)) };
  };
}

/** A profile that is named wins. */
function credentialsOf(environment: Environment): AwsCredentials | undefined {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
    AWS_PROFILE: profile,
  } = environment;
  return accessKeyId && secretAccessKey && !profile
    ? { accessKeyId, secretAccessKey, sessionToken: sessionToken || undefined }
    : undefined;
}
