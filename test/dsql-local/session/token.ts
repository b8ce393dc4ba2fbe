/** Tokens for clients of a stand-in. */
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import type { DsqlLocal } from '../../../src/dsql-local.js';

/** For `admin`. */
export function tokenFor({ host, region, accessKeyId, secretAccessKey }: DsqlLocal): Promise<string> {
  const credentials = { accessKeyId, secretAccessKey };
  return new DsqlSigner({ hostname: host, region, credentials }).getDbConnectAdminAuthToken();
}
