// The suites of a DSQL on one stand-in; the conflict matrix is in ../dsql-local/conflicts.
import { afterAll, beforeAll } from 'vitest';
import { dialectSuite, loginSuite, migrationSuite, transactionSuite } from './suites.js';
import { type DsqlTarget, standIn } from './target.js';

let target: DsqlTarget;
beforeAll(async () => {
  target = await standIn();
});
afterAll(() => target?.stop());

const shared = async (): Promise<DsqlTarget> => ({ ...target, stop: async () => {} });

loginSuite(shared);
dialectSuite(shared);
transactionSuite(shared);
migrationSuite(shared);
