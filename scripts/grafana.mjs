// @ts-check
// Writes docs/grafana/*.json from the tables of metrics: node scripts/grafana.mjs. A test says so when they are not up to date.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/bootstrap.mjs';
import { boards } from './lib/grafana-boards.mjs';

const { metricSections } = await import(`../dist/${'pooler/metrics/all-metrics.js'}`);
const { poolRatios, poolerRatios } = await import(`../dist/${'pooler/metrics/all-alerts.js'}`);
const ratios = { pools: poolRatios, pooler: poolerRatios };
const folder = join(root, 'docs/grafana');
mkdirSync(folder, { recursive: true });
for (const [file, text] of Object.entries(boards(metricSections, ratios))) {
  writeFileSync(join(folder, file), text);
  console.log(`wrote docs/grafana/${file}`);
}
