// The suites of a DSQL on a real cluster: CLUSTER_ENDPOINT, REGION and AWS credentials.
import { describe } from 'vitest';
import { conflictSuite, dialectSuite, loginSuite, migrationSuite, transactionSuite } from './suites.js';
import { cluster, hasCluster, skipped } from './target.js';

if (!hasCluster) console.warn(skipped);

describe.skipIf(!hasCluster)('A cluster of Aurora DSQL', () => {
  loginSuite(cluster);
  conflictSuite(cluster);
  dialectSuite(cluster);
  transactionSuite(cluster);
  migrationSuite(cluster);
});
