// @ts-check
// docs/metrics.md as text, made of the declarations of the metrics.

/**
 * @typedef {{ type: string, unit: string, help: string, labels?: readonly string[], across?: 'sum' | 'max' | 'min', normal: string, bad?: string, action?: string }} Declaration
 * @typedef {{ title: string, common: readonly string[], table: Readonly<Record<string, Declaration>> }} Section
 * @param {readonly Section[]} sections
 */
export function metricsPage(sections) {
  return `${[
    '# Metrics',
    '',
    'Every metric with its unit, what is normal, what is bad, and what to do then. [Observability](observability.md#prometheus) says how to get them, by Prometheus or',
    'OpenTelemetry. This page is generated from the declarations that the exporters, the [dashboards](observability.md#dashboards) and the tests read.',
    ...sections.flatMap(sectionOf),
  ].join('\n')}\n`;
}

/** @param {Section} section */
function sectionOf({ title, common, table }) {
  const labels = common.map((label) => `\`${label}\``).join(', ');
  return [
    '',
    `## ${title}`,
    ...(labels === '' ? [] : ['', `With the label${common.length > 1 ? 's' : ''} ${labels}.`]),
    '',
    '| metric | kind, unit | what it is | normal | bad | what to do |',
    '|---|---|---|---|---|---|',
    ...Object.entries(table).map(
      ([name, { type, unit, help, labels: own = [], normal, bad = '', action = '' }]) => {
        const by = own.length === 0 ? '' : ` by ${own.map((label) => `\`${label}\``).join(', ')}`;
        return `| \`${name}\`${by} | ${type}, ${unitText(unit)} | ${help} | ${plain(normal)} | ${plain(bad)} | ${plain(action)} |`;
      },
    ),
  ];
}

/** @param {string} unit */
function unitText(unit) {
  const words = /** @type {Record<string, string>} */ ({
    s: 'seconds',
    ms: 'milliseconds',
    By: 'bytes',
    1: '0 or 1',
    timestamp: 'seconds since 1970',
  });
  return words[unit] ?? plural(unit.replace(/[{}]/g, ''));
}

/** @param {string} word */
function plural(word) {
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`;
}

/** Sentences of a table's cell. @param {string} text */
function plain(text) {
  return text.replaceAll('|', '\\|').replaceAll('_', '\\_').replaceAll('*', '\\*');
}
