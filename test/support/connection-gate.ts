// A gate before a real PostgreSQL that lets in few new connections a second, for the time of a test.
import { onTestFinished } from 'vitest';
import {
  type ConnectionGate,
  type GateOptions,
  startConnectionGate,
} from '../../bench/burst-expiry/connection-gate.mjs';

export async function startGate(
  target: { readonly host: string; readonly port: number },
  options: GateOptions,
): Promise<ConnectionGate> {
  const gate = await startConnectionGate(target, options);
  onTestFinished(() => gate.stop());
  return gate;
}
