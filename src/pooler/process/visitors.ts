/** Connections whose clients are not accepted yet. */
import { SocketTransport } from '../../net/socket-transport.js';
import type { Transport } from '../../net/transport.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { LoginScope } from '../clients/login/login-scope.js';
import { Refusal } from '../clients/refusal.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** A connection whose client is not accepted yet, or only cancels. */
export interface Visitor {
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
function hangUpOn({ transport }: Visitor): void {
  if (transport instanceof SocketTransport) transport.hangUp();
  else transport.destroy();
}

/** Ends a login: with this error where that can be sent, otherwise at once. */
export function sendAway(visitor: Visitor, error: ErrorFields): void {
  if (visitor.loginScope === undefined) {
    hangUpOn(visitor);
    return;
  }
  visitor.loginScope.end(new Refusal(error));
  // The error is sent before that.
  setImmediate(() => visitor.transport.endAtOnce());
}
