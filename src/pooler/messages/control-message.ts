/** A console command on its way from one worker to all. */
import type { PoolerControls, ShutdownMode } from '../console/pooler-view.js';
import { decodeConfig, type EncodedConfig } from './config-codec.js';

export interface ControlMessage {
  readonly verb: keyof PoolerControls;
  readonly database?: string | undefined;
  readonly mode?: ShutdownMode | undefined;
  /** Id of a client: unique among all workers on the way to the supervisor, and the worker's own id from there. */
  readonly id?: number | undefined;
  readonly config?: EncodedConfig | undefined;
}

const shutdownModes: readonly string[] = ['immediate', 'wait_for_servers', 'wait_for_clients'];

/** Runs the command in this process. */
export function obey(
  controls: PoolerControls,
  { verb, database, mode, id, config }: ControlMessage,
  signal: AbortSignal,
): unknown {
  switch (verb) {
    case 'pause':
    case 'waitClose':
      return controls[verb](database, signal);
    case 'resume':
    case 'reconnect':
    case 'kill':
      return controls[verb](database);
    case 'disable':
    case 'enable':
      return controls[verb](database as string);
    case 'suspend':
      return controls.suspend(signal);
    case 'killClient':
      return controls.killClient(id ?? 0);
    case 'applyConfig':
      return controls.applyConfig(decodeConfig(config ?? {}));
    case 'shutdown':
      return controls.shutdown(
        shutdownModes.includes(mode ?? '') ? (mode as ShutdownMode) : 'immediate',
        signal,
      );
    default:
      throw new TypeError(`Unknown control message ${String(verb)}.`);
  }
}
