// @ts-check
// The gate in a process of its own, so that forwarding takes no time from who is measured. Asked for its counts it tells them.
import { startConnectionGate } from './connection-gate.mjs';

/** @type {{ target: { host: string, port: number }, options: import('./connection-gate.mjs').GateOptions }} */
const orders = JSON.parse(process.argv[2] ?? '{}');

const gate = await startConnectionGate(orders.target, orders.options);
process.on('message', () => process.send?.(gate.counts()));
process.on('disconnect', () => process.exit());
process.send?.({ port: gate.port });
