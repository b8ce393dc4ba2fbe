/** OpenTelemetry's own variables that `headgate serve` reads. The one for metrics precedes the one for all signals. */
import { formatDuration } from '../kernel/duration.js';
import type { Environment } from '../kernel/environment.js';
import type { OtherVariables } from '../pooler/config/config-reader.js';

interface OtelVariables {
  readonly otherVariables: OtherVariables;
  readonly warnings: readonly string[];
}

/** The port of gRPC, by OpenTelemetry's convention. */
const grpcPort = '4317';

export function otelVariables(environment: Environment): OtelVariables {
  const found = new Map<string, { variable: string; text: string }>();
  const textOf = (variable: string): string => environment[variable]?.trim() ?? '';
  const take = (option: string, variable: string, read = (text: string) => text): void => {
    const text = textOf(variable);
    if (text !== '' && !found.has(option)) found.set(option, { variable, text: read(text) });
  };
  if (textOf('OTEL_SDK_DISABLED').toLowerCase() === 'true' || !exportsByOtlp(textOf('OTEL_METRICS_EXPORTER')))
    return { otherVariables: found, warnings: [] };
  take('otlp_endpoint', 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT');
  take('otlp_endpoint', 'OTEL_EXPORTER_OTLP_ENDPOINT', (base) => `${base.replace(/\/+$/, '')}/v1/metrics`);
  take('otlp_headers', 'OTEL_EXPORTER_OTLP_METRICS_HEADERS');
  take('otlp_headers', 'OTEL_EXPORTER_OTLP_HEADERS');
  take('otlp_service_name', 'OTEL_SERVICE_NAME');
  take('otlp_interval', 'OTEL_METRIC_EXPORT_INTERVAL', (ms) =>
    /^\d+$/.test(ms) ? formatDuration(Number(ms)) : ms,
  );
  const endpoint = found.get('otlp_endpoint');
  const protocol = textOf('OTEL_EXPORTER_OTLP_METRICS_PROTOCOL') || textOf('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (endpoint === undefined || !isGrpc(protocol, endpoint.text))
    return { otherVariables: found, warnings: [] };
  found.delete('otlp_endpoint');
  const why = protocol === 'grpc' ? 'the protocol is grpc' : `port ${grpcPort} is that of grpc`;
  return {
    otherVariables: found,
    warnings: [
      `metrics are not exported to ${endpoint.variable}: ${why}, and headgate speaks OTLP over HTTP. Set OTEL_EXPORTER_OTLP_METRICS_PROTOCOL to http/protobuf or http/json, and the endpoint to the collector's port for HTTP (4318).`,
    ],
  };
}

/** A list of exporters; `otlp` is the usual one. */
function exportsByOtlp(exporters: string): boolean {
  return exporters === '' || exporters.split(',').some((name) => name.trim() === 'otlp');
}

function isGrpc(protocol: string, endpoint: string): boolean {
  if (protocol !== '') return protocol === 'grpc';
  return URL.canParse(endpoint) && new URL(endpoint).port === grpcPort;
}
