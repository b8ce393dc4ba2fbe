// @ts-check
// Grafana dashboards made of the tables of metrics: a panel for each metric, with what it means as its description.

/**
 * @typedef {import('./metrics-page.mjs').Declaration & { name: string }} Family
 * @typedef {{ title: string, families: readonly Family[], by: readonly string[] }} Row
 */

const height = 7;
const width = 8;
const perRow = 3;

/**
 * @param {{ uid: string, title: string, variable: string, rows: readonly Row[] }} board
 * `variable`: the label that the dashboard is filtered by.
 */
export function dashboard({ uid, title, variable, rows }) {
  /** @type {object[]} */
  const panels = [];
  let y = 0;
  for (const { title: rowTitle, families, by } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: rowTitle,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y },
    });
    y += 1;
    families.forEach((family, at) => {
      const gridPos = {
        h: height,
        w: width,
        x: width * (at % perRow),
        y: y + height * Math.floor(at / perRow),
      };
      panels.push({ id: panels.length + 1, ...panel(family, by, variable), gridPos });
    });
    y += height * Math.ceil(families.length / perRow);
  }
  const [first] = rows.flatMap(({ families }) => families);
  return {
    uid,
    title,
    tags: ['headgate'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: variable,
          type: 'query',
          datasource,
          query: `label_values(${first?.name}, ${variable})`,
          includeAll: true,
          allValue: '.*',
          multi: true,
          refresh: 2,
        },
      ],
    },
    panels,
  };
}

const datasource = { type: 'prometheus', uid: `\${datasource}` };

/**
 * @param {Family} family
 * @param {readonly string[]} by
 * @param {string} variable
 */
function panel(family, by, variable) {
  return {
    type: 'timeseries',
    title: family.name.replace(/^(?:headgate|dsql)_/, '').replaceAll('_', ' '),
    description: descriptionOf(family),
    datasource,
    fieldConfig: { defaults: { unit: unitOf(family), min: 0, custom: { fillOpacity: 10 } }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: targetsOf(family, by, variable).map((target, at) => ({ ...target, refId: 'ABC'[at] })),
  };
}

/**
 * @param {Family} family
 * @param {readonly string[]} by
 * @param {string} variable
 */
function targetsOf({ name, type, unit, labels = [] }, by, variable) {
  const chosen = `{${variable}=~"$${variable}"}`;
  const groups = [...new Set([...by, ...labels])];
  const legend = groups.map((label) => `{{${label}}}`).join(' ');
  if (type === 'histogram')
    return [0.5, 0.99].map((part) => ({
      expr: `histogram_quantile(${part}, sum by (${[...groups, 'le'].join(', ')}) (rate(${name}_bucket${chosen}[$__rate_interval])))`,
      legendFormat: `p${part * 100} ${legend}`,
    }));
  const value = type === 'counter' ? `rate(${name}${chosen}[$__rate_interval])` : `${name}${chosen}`;
  // Grafana has moments in milliseconds.
  const expr =
    unit === 'timestamp'
      ? `max by (${groups.join(', ')}) (${value}) * 1000`
      : `sum by (${groups.join(', ')}) (${value})`;
  return [{ expr, legendFormat: legend }];
}

/** @param {Family} family */
function descriptionOf({ help, normal, bad, action }) {
  const what = bad === undefined ? [] : [`Bad: ${bad}`, `Then: ${action}`];
  return [help, `Normal: ${normal}`, ...what].join('\n\n');
}

/** @param {Family} family */
function unitOf({ type, unit }) {
  if (type === 'counter') return unit === 'By' ? 'Bps' : unit === 's' ? 'percentunit' : 'cps';
  const known = /** @type {Record<string, string>} */ ({
    s: 's',
    ms: 'ms',
    By: 'bytes',
    timestamp: 'dateTimeFromNow',
  });
  return known[unit] ?? 'short';
}
