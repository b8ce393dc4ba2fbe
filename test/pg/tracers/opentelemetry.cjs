// A program under OpenTelemetry: `node opentelemetry.cjs pg.Pool|headgate|pipelined|DsqlPool COUNT [module]`. Prints its spans and its metrics as JSON.
const { context, metrics, trace } = require('@opentelemetry/api');
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks');
const { MeterProvider, MetricReader } = require('@opentelemetry/sdk-metrics');
const {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} = require('@opentelemetry/sdk-trace-base');
const { PgInstrumentation } = require('@opentelemetry/instrumentation-pg');

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(tracerProvider);
class Reader extends MetricReader {
  onForceFlush() {
    return Promise.resolve();
  }

  onShutdown() {
    return Promise.resolve();
  }
}
const reader = new Reader();
const meterProvider = new MeterProvider({ readers: [reader] });
metrics.setGlobalMeterProvider(meterProvider);
new PgInstrumentation();

async function main([kind, count, asModule]) {
  const { runRequests } = await (asModule ? import('./requests.mjs') : require('./requests.cjs'));
  const tracer = trace.getTracer('test');
  const inRequest = (id, work) =>
    tracer.startActiveSpan(`request ${id}`, async (span) => {
      try {
        return await work();
      } finally {
        span.end();
      }
    });
  const failed = await runRequests(kind, Number(count), inRequest);
  const { resourceMetrics } = await reader.collect();
  const points = resourceMetrics.scopeMetrics.flatMap(({ metrics: each }) =>
    each.map(({ descriptor, dataPoints }) => ({ name: descriptor.name, points: dataPoints.length })),
  );
  const spans = exporter.getFinishedSpans().map((span) => ({
    trace: span.spanContext().traceId,
    id: span.spanContext().spanId,
    parent: span.parentSpanContext?.spanId,
    name: span.name,
    kind: span.kind,
    text: span.attributes['db.statement'],
    attributes: Object.entries(span.attributes)
      .map(([name, value]) => (name === 'db.statement' ? name : `${name}=${value}`))
      .sort(),
    failed: span.status.code === 2,
  }));
  process.stdout.write(JSON.stringify({ failed, spans, metrics: points }));
}

main(process.argv.slice(2));
