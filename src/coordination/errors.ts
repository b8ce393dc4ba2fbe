/** Why there is no lease. Messages carry the numbers at that moment. */
import { HeadgateError } from '../kernel/errors.js';

/** Every lease of the budget is held. The request waits until one is released. */
export class LeaseLimitError extends HeadgateError {
  /** Number of leases asked for. */
  readonly asked: number;
  /** Number of leases held by all holders known here. */
  readonly held: number;
  /** The limit, where it is known here. */
  readonly limit: number | undefined;

  constructor(holder: string, asked: number, held: number, limit?: number) {
    const who = `${holder} asked for ${asked}`;
    super(
      'HG_LEASE_LIMIT',
      limit === undefined
        ? `The coordinator has no lease left: ${who}, and this process holds ${held}. ` +
            'Close connections elsewhere, or raise the limit of the coordinator.'
        : `${held} of ${limit} leases are held: ${who}. ` +
            'Give the pools that share them a smaller max, or raise the limit if the server can take it.',
    );
    this.asked = asked;
    this.held = held;
    this.limit = limit;
  }
}

/** The coordinator failed, or did not answer in time. `cause` is its error, where there is one. */
export class LeaseCoordinatorError extends HeadgateError {
  constructor(what: string, cause?: unknown) {
    super(
      'HG_LEASE_COORDINATOR',
      `${what} Connections that are open stay open; look at the coordinator.`,
      cause === undefined ? undefined : { cause },
    );
  }
}
