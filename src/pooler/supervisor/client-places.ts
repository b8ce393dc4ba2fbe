/** Counts of clients over all workers. A request for a place is answered at once, and a worker's places end with it. */
import { ClientLimits, consoleQuotasFor } from '../clients/client-limits.js';
import { poolSettingsFor } from '../config/pool-settings.js';
import { consoleDatabases, databaseFor, type PoolerConfig } from '../config/pooler-config.js';

export interface PlaceRequest {
  readonly user: string;
  readonly database: string;
}

export class ClientPlaces {
  readonly #limits = new ClientLimits();
  readonly #config: () => PoolerConfig;

  constructor(config: () => PoolerConfig) {
    this.#config = config;
  }

  get total(): number {
    return this.#limits.total;
  }

  /** A worker was started. */
  placesOfWorker(): WorkerClientPlaces {
    return new WorkerClientPlaces((request) => this.#take(request));
  }

  /** Throws a `Refusal`. */
  #take({ user, database }: PlaceRequest): () => void {
    const config = this.#config();
    if (consoleDatabases.includes(database))
      return this.#limits.take(user, database, consoleQuotasFor(config, user));
    const known = databaseFor(config, database);
    const { maxUserClientConnections, maxDbClientConnections } =
      known === undefined ? config.limits : poolSettingsFor(config, known, user);
    return this.#limits.take(user, database, {
      total: config.limits.maxClientConn,
      ofUser: maxUserClientConnections,
      ofDatabase: maxDbClientConnections,
    });
  }
}

export class WorkerClientPlaces {
  readonly #takePlace: (request: PlaceRequest) => () => void;
  readonly #places = new Map<number, () => void>();
  #last = 0;
  #isClosed = false;

  constructor(takePlace: (request: PlaceRequest) => () => void) {
    this.#takePlace = takePlace;
  }

  get clients(): number {
    return this.#places.size;
  }

  /** Returns the number of the place. Throws a `Refusal`. */
  take(request: PlaceRequest): number {
    const place = ++this.#last;
    if (!this.#isClosed) this.#places.set(place, this.#takePlace(request));
    return place;
  }

  left(place: number): void {
    this.#places.get(place)?.();
    this.#places.delete(place);
  }

  /** The worker and its clients have ended. */
  close(): void {
    this.#isClosed = true;
    for (const giveBack of this.#places.values()) giveBack();
    this.#places.clear();
  }
}
