// @ts-check
// Queries of alerts, recording rules and dashboards, made of what the declarations say: how the series of a pooler's workers become
// one, and which percentiles a histogram has.

/**
 * @typedef {import('./metrics-page.mjs').Section} Section
 * @typedef {import('./metrics-page.mjs').Declaration & { name: string }} Family
 * @typedef {{ record: string, expr: string, help: string, normal: string, bad?: string, action?: string }} RecordedQuery
 */

/** A metric in a query, with its selector, and with the function over time that it is in. */
const vectors =
  /\b(?:(?<call>rate|increase|min_over_time|max_over_time)\((?<inner>(?:dsql|headgate)_\w+(?:\{[^}]*\})?)(?<range>\[[^\]]+\])\)|(?<bare>(?:dsql|headgate)_\w+(?:\{[^}]*\})?))/g;

/**
 * Joins the series of a pooler's workers, each metric as it declares it; labels that a selector fixes are dropped.
 * @param {string} expr
 * @param {ReadonlyMap<string, Family>} ofWorkers the metrics that each worker has
 */
export function acrossWorkers(expr, ofWorkers) {
  return expr.replaceAll(vectors, (whole, ...found) => {
    const { call, inner, bare } = found.at(-1);
    const [name = '', fixed = ''] = (inner ?? bare).split(/(?=\{)/);
    const family = ofWorkers.get(name);
    if (family === undefined) return whole;
    const isGrowth = call === 'rate' || call === 'increase';
    const how = isGrowth ? 'sum' : (family.across ?? 'sum');
    const dropped = ['worker', ...[...fixed.matchAll(/(\w+)="/g)].map(([, label]) => label)];
    return `${how} without (${dropped.join(', ')}) (${whole})`;
  });
}

/**
 * Adds a selector to each metric of a query.
 * @param {string} expr
 * @param {string} selector such as `service=~"$service"`
 */
export function selecting(expr, selector) {
  return expr.replaceAll(/\b((?:dsql|headgate)_\w+)(?:\{([^}]*)\})?/g, (_, name, inside) =>
    inside === undefined ? `${name}{${selector}}` : `${name}{${inside},${selector}}`,
  );
}

/** @param {number} part @param {readonly string[]} by @param {string} name with its selector behind `_bucket` @param {string} window */
export function percentile(part, by, name, window) {
  return `histogram_quantile(${part}, sum by (${[...by, 'le'].join(', ')}) (rate(${name}[${window}])))`;
}

/** The metrics of which each worker of a pooler has series. @param {Readonly<Record<string, Section>>} sections */
export function metricsOfWorkers(sections) {
  const own = ['process', 'poolerPools'].flatMap((name) => Object.entries(sections[name]?.table ?? {}));
  return new Map(own.map(([name, declared]) => [name, { name, ...declared }]));
}
