// `npm run compare-dsql`: prints where the stand-in answers differently from the cluster of CLUSTER_ENDPOINT and REGION.
import { test } from 'vitest';
import { answersOf, differencesOf, tableOf } from './compare.js';
import { cluster, hasCluster, newSchema, standIn } from './target.js';

const isAsked = hasCluster && process.env['HEADGATE_COMPARE_DSQL'] !== undefined;

test.skipIf(!isAsked)(
  'The stand-in is compared with a cluster',
  async () => {
    const schema = newSchema();
    const local = await standIn({}, schema);
    try {
      const real = await cluster(schema);
      try {
        const ones = await answersOf(local);
        const differences = differencesOf(ones, await answersOf(real));
        process.stdout.write(`\n${tableOf(differences, local.name, real.name, ones.length)}\n`);
      } finally {
        await real.stop();
      }
    } finally {
      await local.stop();
    }
  },
  600_000,
);
