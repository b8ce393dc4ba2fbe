// @ts-check
// Writes docs/metrics.md from the declarations of the metrics: node scripts/metrics-page.mjs. A test says so when it is not up to date.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/bootstrap.mjs';
import { metricsPage } from './lib/metrics-page.mjs';

/** @param {string} file */
const load = (file) => import(`../dist/${file}`);
const { metricSections } = await load('pooler/metrics/all-metrics.js');
const { unitText } = await load('observe/metric-declaration.js');
writeFileSync(join(root, 'docs/metrics.md'), metricsPage(Object.values(metricSections), unitText));
console.log('wrote docs/metrics.md');
