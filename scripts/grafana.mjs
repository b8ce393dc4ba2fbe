// @ts-check
// Writes docs/grafana/*.json from the tables of metrics: node scripts/grafana.mjs. A test says so when they are not up to date.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/bootstrap.mjs';
import { boards } from './lib/grafana-boards.mjs';

const folder = join(root, 'docs/grafana');
mkdirSync(folder, { recursive: true });
for (const [file, text] of Object.entries(boards(await families()))) {
  writeFileSync(join(folder, file), text);
  console.log(`wrote docs/grafana/${file}`);
}

async function families() {
  /** @param {string} file */
  const load = (file) => import(`../dist/${file}`);
  const { metricFamilies } = await load('observe/exposed-pools.js');
  const { leaseFamilies } = await load('observe/lease-metrics.js');
  const { rateFamilies } = await load('observe/rate-metrics.js');
  const { poolFamilies, processFamilies } = await load('pooler/metrics/pooler-families.js');
  const { shareFamilies } = await load('pooler/metrics/share-families.js');
  return { metricFamilies, leaseFamilies, rateFamilies, poolFamilies, processFamilies, shareFamilies };
}
