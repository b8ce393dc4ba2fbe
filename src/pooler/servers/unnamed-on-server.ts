/** Follows the unnamed statement on one server, and tells the user of the connection about changes. */
import { parseComplete } from '../../wire/fixed-messages.js';
import type { BackendUser } from './backend-user.js';
import type { Outgoing } from './outgoing.js';
import type { StandIn } from './repeated-statement.js';
import { Asked, type Subject } from './reply-queue.js';
import { UnnamedStatement } from './unnamed-statement.js';

export class UnnamedOnServer {
  /** How often the unnamed statement was parsed or discarded, as far as the server has answered. */
  version = 0;

  /** A request of the client's has changed the statement. */
  changed(unnamed: UnnamedStatement | undefined, user: BackendUser | undefined): void {
    this.version++;
    user?.unnamedChanged(unnamed, true);
  }

  /** A Parse has succeeded. */
  parsed(subject: Subject, asked: Asked | 0, user: BackendUser | undefined): void {
    if (!(subject instanceof UnnamedStatement)) return;
    if (asked === Asked.parse) this.changed(subject, user);
    else this.version++;
  }

  /** Tells the client that its own statement was parsed, although a stand-in has replaced it. */
  pretendParsed({ unnamed }: StandIn, toClient: Outgoing, user: BackendUser | undefined): void {
    toClient.mix().append(parseComplete);
    user?.unnamedChanged(unnamed, false);
  }
}
