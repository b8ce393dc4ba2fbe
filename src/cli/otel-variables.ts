/** OpenTelemetry's own variables that `headgate serve` reads. The one for metrics precedes the one for all signals. */
import { formatDuration } from '../kernel/duration.js';
import type { Environment } from '../kernel/environment.js';
import type { OtherVariables } from '../pooler/config/config-reader.js';

export function otelVariables(environment: Environment): OtherVariables {
  const found = new Map<string, { variable: string; text: string }>();
  const take = (option: string, variable: string, read = (text: string) => text): void => {
    const text = environment[variable]?.trim();
    if (text && !found.has(option)) found.set(option, { variable, text: read(text) });
  };
  take('otlp_endpoint', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT');
  take('otlp_endpoint', 'OTEL_EXPORTER_OTLP_ENDPOINT', (base) => `${base.replace(/\/+$/, '')}/v1/metrics`);
  take('otlp_headers', 'OTEL_EXPORTER_OTLP_METRICS_HEADERS');
  take('otlp_headers', 'OTEL_EXPORTER_OTLP_HEADERS');
  take('otlp_service_name', 'OTEL_SERVICE_NAME');
  take('otlp_interval', 'OTEL_METRIC_EXPORT_INTERVAL', (ms) =>
    /^\d+$/.test(ms) ? formatDuration(Number(ms)) : ms,
  );
  return found;
}
