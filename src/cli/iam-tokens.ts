/** Tokens of AWS IAM for the pooler: signed once and used by many connections, until shortly before they expire. */
import { rdsTokenProvider } from '../dsql/rds-token.js';
import { awsTokenProvider } from '../dsql/signer.js';
import { TokenCache, type TokenProvider } from '../dsql/token-cache.js';
import type { Environment } from '../kernel/environment.js';
import { iamRegionOf } from '../pooler/config/iam-region.js';
import { ServingError } from '../pooler/errors.js';
import type { IamTokenRequest, MakeIamToken } from '../pooler/servers/iam-login.js';

export interface IamTokenTools {
  readonly environment: Environment;
  /** In place of AWS's own. */
  readonly providers?: Readonly<Partial<Record<IamTokenRequest['iam'], TokenProvider>>> | undefined;
  /** A token could not be renewed ahead of time; the present one is still good. */
  readonly onRefreshFailed?: ((error: unknown) => void) | undefined;
}

export function iamTokens({ environment, providers = {}, onRefreshFailed }: IamTokenTools): MakeIamToken {
  const caches = {
    rds: new TokenCache(providers.rds ?? rdsTokenProvider({ environment }), { onRefreshFailed }),
    dsql: new TokenCache(providers.dsql ?? awsTokenProvider(), { onRefreshFailed }),
  };
  return async ({ iam, host, port, user, region: given, refused }) => {
    const region = iamRegionOf({ region: given }, host, environment);
    if (region === undefined) throw new ServingError(`The region of ${host} is not known: set AWS_REGION.`);
    // RDS signs the port, too.
    const request = { host: iam === 'rds' ? `${host}:${port}` : host, region, user };
    const cache = caches[iam];
    if (refused !== undefined) cache.refuse(request, refused);
    return cache.get(request);
  };
}
