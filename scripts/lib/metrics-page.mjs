// @ts-check
// docs/metrics.md as text, made of the declarations of the metrics.

/**
 * @typedef {{ type: string, unit: string, help: string, labels?: readonly string[], across?: 'sum' | 'max' | 'min', normal: string, bad?: string, action?: string }} Declaration
 * @typedef {{ title: string, common: readonly string[], table: Readonly<Record<string, Declaration>> }} Section
 * @param {readonly Section[]} sections
 * @param {(unit: any) => string} unitText `unitText` of src/observe/metric-declaration.ts
 */
export function metricsPage(sections, unitText) {
  return `${[
    '# Metrics',
    '',
    'Every metric with its unit, what is normal, what is bad, and what to do then. [Observability](observability.md#prometheus) says how to get them, by Prometheus or',
    'OpenTelemetry. This page is generated from the declarations that the exporters, the [dashboards](observability.md#dashboards) and the tests read.',
    ...sections.flatMap((section) => sectionOf(section, unitText)),
  ].join('\n')}\n`;
}

/**
 * @param {Section} section
 * @param {(unit: any) => string} unitText
 */
function sectionOf({ title, common, table }, unitText) {
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

/** Sentences of a table's cell. @param {string} text */
function plain(text) {
  return text.replaceAll('|', '\\|').replaceAll('_', '\\_').replaceAll('*', '\\*');
}
