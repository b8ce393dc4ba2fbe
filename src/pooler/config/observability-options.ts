/** Options: metrics, statistics of statements, the page, and the export to OpenTelemetry. */
import { boolean, duration, integer, list, query } from './kinds.js';
import { boundAtStart, option } from './option.js';
import { otlpEndpoint, otlpHeadersKind } from './otlp-kinds.js';
import { endpoint, secret } from './special-kinds.js';

const exportedFromStart = { reload: 'restart', whyRestart: 'the export begins with the pooler' } as const;
const otlpInterval = duration(undefined);
const otlpServiceName = { ...query, name: 'text', placeholder: 'TEXT' };

const madeAtStart = { reload: 'restart', whyRestart: 'the page is made at the start' } as const;

export const observabilityOptions = {
  metricsListen: option(endpoint, undefined, {
    name: 'metrics_listen',
    meaning: 'where Prometheus finds the metrics, at /metrics, and people the page, at /',
    ...boundAtStart,
  }),
  metricsAllowedHosts: option(list, Object.freeze([]), {
    name: 'metrics_allowed_hosts',
    meaning:
      'host names under which metrics_listen may be asked besides addresses and names of this machine; *.example.com is all below it',
    reload: 'now',
  }),
  queryStats: option(integer({ min: 0, max: 100_000, zero: 'no statistics' }), 2_000, {
    name: 'query_stats',
    meaning: 'how many statements have statistics of their own, in each process (SHOW QUERY_STATS)',
    reload: 'restart',
    whyRestart: 'statistics begin with the pooler',
  }),
  metricsMaxPools: option(integer({ min: 1, max: 100_000 }), 200, {
    name: 'metrics_max_pools',
    meaning: 'pools that have series of their own, and users of a budget; all others are one',
    reload: 'now',
  }),
  page: option(boolean, true, {
    name: 'page',
    meaning: 'serves the page at metrics_listen; beyond this machine only with a password',
    ...madeAtStart,
  }),
  pagePassword: option(secret, undefined, {
    name: 'page_password',
    meaning: 'password or token of those who may look at the page and act on it',
    ...madeAtStart,
    defaultText: 'a token, printed at the start',
  }),
  pageViewerPassword: option(secret, undefined, {
    name: 'page_viewer_password',
    meaning: 'password or token of those who may look at the page',
    ...madeAtStart,
  }),
  otlpEndpoint: option(otlpEndpoint, undefined, {
    name: 'otlp_endpoint',
    meaning:
      'collector of OpenTelemetry that gets the metrics, by OTLP over HTTP; without a path: /v1/metrics',
    ...exportedFromStart,
  }),
  otlpHeaders: option(otlpHeadersKind, undefined, {
    name: 'otlp_headers',
    meaning: 'headers for the collector, as NAME=VALUE,NAME=VALUE; never shown',
    ...exportedFromStart,
  }),
  otlpInterval: option(otlpInterval, 60_000, {
    name: 'otlp_interval',
    meaning: 'how often the collector gets the metrics',
    ...exportedFromStart,
  }),
  otlpServiceName: option(otlpServiceName, 'headgate', {
    name: 'otlp_service_name',
    meaning: 'service.name for the collector',
    ...exportedFromStart,
  }),
};
