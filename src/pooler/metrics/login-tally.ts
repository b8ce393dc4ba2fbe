/** Who came to the pooler, and who was refused. Not by user: whoever is refused may have made up a name. */
import { type LoginFailure, loginFailures } from '../clients/failure-words.js';

export class LoginTally {
  /** Clients that were let in, those at the console included. */
  succeeded = 0;
  readonly failed: Record<LoginFailure, number> = Object.fromEntries(
    loginFailures.map((word) => [word, 0]),
  ) as Record<LoginFailure, number>;
}
