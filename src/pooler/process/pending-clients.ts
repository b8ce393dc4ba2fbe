/** Connections whose clients are not accepted yet. */
import { SocketTransport } from '../../net/socket-transport.js';
import type { Transport } from '../../net/transport.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { LoginScope } from '../clients/login/login-scope.js';
import { Refusal } from '../clients/refusal.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** A connection whose client has no session yet, or only cancels. A client of the console keeps this record. */
export interface PendingClient {
  readonly id: number;
  /** Replaced once TLS has begun. */
  transport: Transport;
  readonly connectedAt: number;
  applicationName?: string;
  user?: string;
  database?: string;
  /** Has a cancel request, which was passed on or waits for a connection. */
  cancelling?: 'passed_on' | 'waiting';
  replication?: 'none' | 'logical' | 'physical';
  /** Scope of its login, once the client has sent its startup packet. */
  loginScope?: LoginScope;
  /** The pool whose server the login of an authenticated client waits for; `since` is by the clock of the process. */
  waitsFor?: { readonly pool: BackendPool; readonly since: number } | undefined;
}

/** During a TLS handshake the transport has given its socket away, and only the socket can be closed. */
function hangUpOn({ transport }: PendingClient): void {
  if (transport instanceof SocketTransport) transport.hangUp();
  else transport.destroy();
}

/** Ends a login: with this error where that can be sent, otherwise at once. */
export function endLogin(pending: PendingClient, error: ErrorFields): void {
  if (pending.loginScope === undefined) {
    hangUpOn(pending);
    return;
  }
  pending.loginScope.end(new Refusal(error));
  // The error is sent before that.
  setImmediate(() => pending.transport.endAtOnce());
}
