/** Where metrics are exported to, as the configuration says it. */
import { hostname } from 'node:os';
import { otlpHeaders } from '../config/otlp-kinds.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { OtlpTarget } from './otlp-exporter.js';

/** Undefined without an endpoint. */
export function otlpTargetOf({ observability }: PoolerConfig, version: string): OtlpTarget | undefined {
  const { otlpEndpoint, otlpHeaders: headers, otlpInterval, otlpServiceName } = observability;
  if (otlpEndpoint === undefined) return undefined;
  return {
    url: otlpEndpoint,
    headers: otlpHeaders(headers?.reveal() ?? ''),
    intervalMs: otlpInterval,
    resource: {
      'service.name': otlpServiceName,
      'service.version': version,
      'service.instance.id': `${hostname()}:${process.pid}`,
    },
  };
}
