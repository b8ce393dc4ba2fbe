/** The options as programs see them: `pool.options`, which each client is made with. */
import type { DialingPool } from './pg-dialer.js';

export type PublicOptions = Record<string, unknown> & DialingPool['options'];

/**
 * The options that `pool.options` shows and each client is made with: a copy with pg-pool's defaults filled in, secrets out
 * of sight of a console, and `max` that can be changed while the pool works.
 */
export function publicOptions(
  given: Record<string, unknown> | null | undefined,
  max: { read(): number; write(max: number): void },
): PublicOptions {
  const options: Record<string, unknown> = { ...given };
  hide(options, 'password');
  const ssl = options['ssl'];
  if (typeof ssl === 'object' && ssl !== null && 'key' in ssl) hide(ssl as Record<string, unknown>, 'key');
  options['min'] ||= 0;
  options['maxUses'] ||= Infinity;
  options['allowExitOnIdle'] ||= false;
  options['maxLifetimeSeconds'] ||= 0;
  if (options['idleTimeoutMillis'] === undefined) options['idleTimeoutMillis'] = 10_000;
  Object.defineProperty(options, 'max', {
    enumerable: true,
    configurable: true,
    get: max.read,
    set: max.write,
  });
  return options as PublicOptions;
}

function hide(object: Record<string, unknown>, name: string): void {
  if (!(name in object)) return;
  Object.defineProperty(object, name, {
    configurable: true,
    enumerable: false,
    writable: true,
    value: object[name],
  });
}
