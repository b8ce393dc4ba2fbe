/** Lets clients in to the console: who may use it, as what, and what is logged of it. */

import { peerOf } from '../../net/socket-peer.js';
import type { Transport } from '../../net/transport.js';
import { SqlState } from '../../wire/sql-states.js';
import { consoleQuotasFor } from '../clients/client-limits.js';
import type { Admission, Applicant } from '../clients/login/startup-handshake.js';
import { Refusal, shown } from '../clients/refusal.js';
import { fatal } from '../clients/session-errors.js';
import {
  type ConfigError,
  describeAsPgBouncer,
  describeAsTlsProblem,
  describeProblem,
} from '../config/config-problems.js';
import { type AdminKeeper, AdminSession } from '../console/admin-session.js';
import { poolerParameters, reportedSettings } from '../console/driver-settings.js';
import type { ConsoleTools } from '../console/run-command.js';
import { takePlace } from './client-places.js';
import type { PendingClient } from './pending-clients.js';
import type { PoolerState } from './pooler-state.js';

/** Views and commands for a console client. */
export type ToolsFor = (role: ConsoleTools['role']) => ConsoleTools;

/** PgBouncer's console user for the owner of the process. */
const ownConsoleUser = 'pgbouncer';

export class ConsoleLogin {
  readonly #pooler: PoolerState;
  readonly #toolsFor: ToolsFor;

  constructor(pooler: PoolerState, toolsFor: ToolsFor) {
    this.#pooler = pooler;
    this.#toolsFor = toolsFor;
  }

  /** As with PgBouncer, the owner of the process is a console administrator under this name through the Unix socket. */
  isOwnUser(user: string, transport: Transport): boolean {
    if (!this.#pooler.isPgBouncer || user !== ownConsoleUser || !transport.isUnix) return false;
    return peerOf(transport)?.userId === process.getuid?.();
  }

  async admit(applicant: Applicant, pending: PendingClient): Promise<Admission> {
    const pooler = this.#pooler;
    const { user, database, hasLongKeys, transport } = applicant;
    const { adminUsers, statsUsers } = pooler.config.admin;
    const isAdmin = adminUsers.includes(user) || this.isOwnUser(user, transport);
    const role = isAdmin ? 'admin' : statsUsers.includes(user) ? 'stats' : undefined;
    if (role === undefined) throw notForTheConsole(user);
    const leave = await takePlace(pooler, user, database, consoleQuotasFor(pooler.config, user));
    if (applicant.scope.isOver) leave();
    applicant.scope.throwIfOver();
    const client = { id: pending.id, user, database, transport, connectedAt: pending.connectedAt };
    let session: AdminSession | undefined;
    const key = pooler.keys.register({ cancel: async () => session?.cancel() }, hasLongKeys);
    const keeper: AdminKeeper = {
      consoleEnded: (ended) => {
        leave();
        pooler.keys.forget(key);
        pooler.consoles.delete(ended);
        if (pooler.isPgBouncer) pooler.connections.disconnected(client, 'the client said goodbye');
      },
      commandCame: () => pooler.consoleCommands++,
      commandGiven: (_, command, problem) => logCommand(pooler, user, command, problem),
      commandFailed: (_, command, error) =>
        pooler.log('error', 'console command failed', { command, error: String(error) }),
    };
    const begin = (rest: Buffer): void => {
      session = new AdminSession(transport, this.#toolsFor(role), keeper);
      pooler.consoleLogins++;
      pooler.consoles.set(session, pending);
      pooler.logins.succeeded++;
      pooler.connections.connected(client);
      if (rest.length > 0) session.bytesCame(rest, 0, rest.length);
    };
    const parameters = pooler.isPgBouncer
      ? new Map([...reportedSettings, ...poolerParameters('statement', 0)])
      : reportedSettings;
    return { parameters, key, notice: undefined, begin };
  }
}

function logCommand(pooler: PoolerState, user: string, command: string, held: ConfigError | undefined): void {
  if (!pooler.isPgBouncer) {
    pooler.log('info', 'console command', {
      user,
      command,
      held: held?.problems.map(describeProblem).join('; '),
    });
    return;
  }
  pooler.log('info', `${command} command issued`);
  for (const problem of held?.problems ?? [])
    pooler.log('error', describeAsTlsProblem(problem) ?? describeAsPgBouncer(problem));
}

function notForTheConsole(user: string): Refusal {
  return new Refusal(
    fatal(
      SqlState.invalidAuthorization,
      `user "${shown(user)}" may not use the console`,
      'Users in admin_users or stats_users of the pooler may.',
      'not allowed',
    ),
  );
}
