// @ts-check
// Writes docs/prometheus-alerts.yml and docs/prometheus-rules.yml from the declared alerts and metrics, after a build: node
// scripts/alerts.mjs. A test says so when they are not up to date.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/bootstrap.mjs';
import { alertFile, recordingFile } from './lib/rule-files.mjs';

const { metricSections } = await import(`../dist/${'pooler/metrics/all-metrics.js'}`);
const { alertGroups, poolRatios, poolerRatios } = await import(`../dist/${'pooler/metrics/all-alerts.js'}`);
const files = {
  'prometheus-alerts.yml': alertFile(alertGroups, metricSections),
  'prometheus-rules.yml': recordingFile({ pools: poolRatios, pooler: poolerRatios }, metricSections),
};
for (const [file, text] of Object.entries(files)) {
  writeFileSync(join(root, 'docs', file), text);
  console.log(`wrote docs/${file}`);
}
