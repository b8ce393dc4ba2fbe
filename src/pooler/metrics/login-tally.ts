/** Counts of accepted and refused logins. Not by user: a refused client may have invented its name. */
import { type LoginFailure, loginFailures } from '../clients/login-failures.js';

export class LoginTally {
  /** Accepted clients, including console clients. */
  succeeded = 0;
  readonly failed: Record<LoginFailure, number> = Object.fromEntries(
    loginFailures.map((word) => [word, 0]),
  ) as Record<LoginFailure, number>;
}
