/** Judges the token of a login by the name that TLS was asked for, the region, the identity and the faults of the moment. */
import type { ErrorFields } from '../../wire/error-fields.js';
import type { Faults } from '../faults.js';
import type { LocalSettings } from '../options.js';
import type { Accounts } from './accounts.js';
import { localAccount } from './default-identity.js';
import type { IamGrants } from './iam-grants.js';
import { judgeLogin } from './login.js';

export interface TokenRules {
  readonly settings: Pick<LocalSettings, 'host' | 'region' | 'requireServerName'>;
  readonly endpoint: string;
  readonly clusterId: string;
  readonly accounts: Accounts;
  readonly grants: IamGrants;
  readonly faults: Pick<Faults, 'areTokensExpired'>;
}

const noServerName: ErrorFields = {
  severity: 'FATAL',
  code: '08006',
  message: 'unable to accept connection, sni was not received',
};

/** TLS names no server where a client connects to an address: then the token has to be for an address of the loopback. */
export function judgeToken(
  token: string,
  user: string,
  serverName: string | undefined,
  rules: TokenRules,
): ErrorFields | undefined {
  const { settings, endpoint, clusterId, accounts, grants, faults } = rules;
  const addresses = ['127.0.0.1', '::1', 'localhost', settings.host];
  if (serverName === undefined && (settings.requireServerName || token.startsWith(`${endpoint}/`)))
    return noServerName;
  const verdict = judgeLogin(token, {
    hosts: serverName === undefined ? addresses : [serverName],
    region: settings.region,
    user,
    now: faults.areTokensExpired ? Date.now() + 8 * 86_400_000 : Date.now(),
    accounts,
    grants,
    clusterArn: `arn:aws:dsql:${settings.region}:${localAccount}:cluster/${clusterId}`,
  });
  return 'refusal' in verdict ? verdict.refusal : undefined;
}
