// A program under dd-trace: `node dd-trace.cjs pg.Pool|headgate|pipelined|DsqlPool COUNT [module]`. Prints its spans as JSON.
process.env.DD_TRACE_STARTUP_LOGS = 'false';
process.env.DD_INSTRUMENTATION_TELEMETRY_ENABLED = 'false';
process.env.DD_REMOTE_CONFIGURATION_ENABLED = 'false';
const tracer = require('dd-trace').init({ plugins: false });
const spans = [];
tracer._tracer._exporter.export = (finished) => {
  for (const span of finished) {
    spans.push({
      trace: String(span.trace_id),
      id: String(span.span_id),
      parent: String(span.parent_id),
      name: span.name,
      kind: `${span.type} ${span.meta['span.kind']} ${span.service}`,
      attributes: [...Object.keys(span.meta), ...Object.keys(span.metrics)].sort(),
      text: span.resource,
      failed: span.error === 1,
      waited: 'db.pool.wait_time_ms' in span.metrics,
    });
  }
};
tracer.use('pg', true);

async function main([kind, count, asModule]) {
  const { runRequests } = await (asModule ? import('./requests.mjs') : require('./requests.cjs'));
  const inRequest = (id, work) => tracer.trace(`request ${id}`, work);
  const failed = await runRequests(kind, Number(count), inRequest);
  await new Promise((resolve) => setImmediate(resolve));
  process.stdout.write(JSON.stringify({ failed, spans }), () => process.exit());
}

main(process.argv.slice(2));
