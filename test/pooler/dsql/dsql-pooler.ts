// A pooler in front of the stand-in for Aurora DSQL.
import { iamTokens } from '../../../src/cli/iam-tokens.js';
import type { TokenProvider, TokenRequest } from '../../../src/dsql/token-cache.js';
import type { PoolerHost } from '../../../src/pooler/process/pooler.js';
import type { TestDsql } from '../../support/dsql-local.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';

const tokenLifeMs = 900_000;

/** Tokens by AWS's signer for the names that the pooler asks for. */
export function tokensOf(dsql: TestDsql): TokenProvider {
  return async ({ user, host }: TokenRequest) => ({
    token: await dsql.token({ user, hostname: host }),
    expiresAt: new Date(Date.now() + tokenLifeMs),
  });
}

/** The stand-in as a test's database. */
export function databaseOf({ host, port }: TestDsql, user: string): TestDatabase {
  const url = `postgresql://${user}@${host}:${port}/postgres`;
  return { host, port, user, password: '', database: 'postgres', url, drop: async () => {} };
}

/** Sections of the configuration; what `tree` says comes on top, section by section. */
export function treeOf({ host, port, region, caFile }: TestDsql, tree: ConfigTree = {}): ConfigTree {
  return {
    databases: { postgres: { host, port, iam: 'dsql', region } },
    serverTls: { mode: 'verify-full', caFile },
    ...tree,
  };
}

export interface DsqlPoolerOptions {
  readonly user?: string;
  readonly provide?: TokenProvider;
  readonly host?: PoolerHost;
}

/** A pooler in this process, stopped after the test. */
export function startDsqlPooler(
  dsql: TestDsql,
  tree: ConfigTree = {},
  { user = 'admin', provide = tokensOf(dsql), host = {} }: DsqlPoolerOptions = {},
): Promise<TestPooler> {
  const makeIamToken = iamTokens({ environment: {}, providers: { dsql: provide } });
  return startTestPooler(databaseOf(dsql, user), treeOf(dsql, tree), { host: { makeIamToken, ...host } });
}
