/** A fleet whose limits are in DynamoDB: leases and a rate per server, made when they are first asked for. */
import { hostname } from 'node:os';
import { DynamoLeases } from '../../coordination/dynamodb/dynamo-leases.js';
import { DynamoRateLimiter } from '../../coordination/dynamodb/dynamo-rate-limiter.js';
import { type FleetConfig, fleetLeaseOptions, fleetRateOptions } from '../config/fleet-settings.js';
import type { PoolerLog } from '../log.js';
import type { Fleet, FleetStats } from './fleet.js';

export interface DynamoFleetParts {
  readonly config: FleetConfig;
  /** Name of a server in the table, unless configured. */
  readonly endpointOf: (server: string) => string;
  readonly log: PoolerLog;
}

/** Limit for returning leases at the end. The table may be what is broken, so the wait must be short. */
const endTimeoutMs = 3_000;

export class DynamoFleet implements Fleet {
  readonly #parts: DynamoFleetParts;
  readonly #instance: string;
  readonly #leases = new Map<string, DynamoLeases>();
  readonly #limiters = new Map<string, DynamoRateLimiter>();

  constructor(parts: DynamoFleetParts) {
    this.#parts = parts;
    this.#instance = parts.config.instance ?? `${hostname()}/${process.pid}`;
  }

  leasesOf(server: string): DynamoLeases | undefined {
    const known = this.#leases.get(server);
    const options = fleetLeaseOptions(this.#parts.config, this.#endpointOf(server));
    if (known !== undefined || options === undefined) return known;
    const { log } = this.#parts;
    const made = new DynamoLeases({
      ...options,
      instance: this.#instance,
      log: (message, error) =>
        log('warn', 'fleet trouble', {
          server,
          detail: message,
          error: error instanceof Error ? error.message : undefined,
        }),
    });
    this.#leases.set(server, made);
    return made;
  }

  rateLimiterOf(server: string): DynamoRateLimiter | undefined {
    const known = this.#limiters.get(server);
    const options = fleetRateOptions(this.#parts.config, this.#endpointOf(server));
    if (known !== undefined || options === undefined) return known;
    const made = new DynamoRateLimiter(options);
    this.#limiters.set(server, made);
    return made;
  }

  #endpointOf(server: string): string {
    return this.#parts.config.endpoint ?? this.#parts.endpointOf(server);
  }

  stats(): FleetStats[] {
    const servers = new Set([...this.#leases.keys(), ...this.#limiters.keys()]);
    return Array.from(servers, (server) => ({
      server,
      endpoint: this.#endpointOf(server),
      instance: this.#instance,
      service: this.#parts.config.service ?? 'headgate',
      leases: this.#leases.get(server)?.stats(),
      rate: this.#limiters.get(server)?.stats(),
    }));
  }

  async end(): Promise<void> {
    const ended = await Promise.all(
      Array.from(this.#leases, async ([server, leases]) => ({
        server,
        isDone: await leases.end({ timeout: endTimeoutMs }),
      })),
    );
    for (const { server, isDone } of ended)
      if (!isDone) this.#parts.log('warn', 'fleet leases not returned', { server, timeout_ms: endTimeoutMs });
  }
}
