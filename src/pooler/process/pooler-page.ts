/** The page of a pooler: its address, its access rights and its log entries. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { secretProblems } from '../../dashboard/credentials.js';
import { EventLog } from '../../dashboard/event-log.js';
import { PageServer } from '../../dashboard/page-server.js';
import { PoolSource, type ShownPool } from '../../dashboard/pool-source.js';
import type { AuditRecord } from '../../dashboard/snapshot.js';
import { isLoopback } from '../../net/known-host.js';
import { headgateVersion } from '../../observe/version.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import { ServingError } from '../errors.js';
import type { PoolerLog } from '../log.js';
import { PoolerSource, type PoolerSourceParts } from './pooler-source.js';

/** A log that also keeps warnings and errors for the page. */
export function rememberingLog(log: PoolerLog, events: EventLog): PoolerLog {
  return (level, message, details) => {
    if (level === 'warn' || level === 'error') events.note(Date.now(), level, message, details);
    log(level, message, details);
  };
}

/** True if there is a page. Without a password it is for this machine alone. */
export function hasPage({ observability }: PoolerConfig): boolean {
  const { metricsListen, page, pagePassword, pageViewerPassword } = observability;
  if (metricsListen === undefined || !page) return false;
  return isLoopback(metricsListen.host) || pagePassword !== undefined || pageViewerPassword !== undefined;
}

export interface PoolerPageParts extends PoolerSourceParts {
  readonly log: PoolerLog;
  readonly events: EventLog;
}

export class PoolerPage {
  readonly #server: PageServer;
  readonly #log: PoolerLog;
  #shownPools = 0;

  /** Throws a `ServingError` for passwords that are easy to guess. */
  constructor(parts: PoolerPageParts) {
    const { pagePassword, pageViewerPassword } = parts.config().observability;
    const secrets = { operator: pagePassword?.reveal(), viewer: pageViewerPassword?.reveal() };
    const [problem] = secretProblems(secrets);
    if (problem !== undefined) throw new ServingError(problem);
    this.#log = parts.log;
    this.#server = new PageServer({
      subjects: [{ id: 'pooler', source: new PoolerSource(parts), events: parts.events }],
      secrets,
      tell: (record) => this.#tell(record),
    });
  }

  /** Contains the login token where no password was configured. Browsers do not send the fragment of an address. */
  get fragment(): string {
    return this.#server.token === undefined ? '' : `#token=${this.#server.token}`;
  }

  /** Shows a pool of the program that runs the pooler. */
  show(pool: ShownPool): void {
    const events = new EventLog();
    // Pools may have one name.
    this.#server.add(`pool-${++this.#shownPools}`, new PoolSource(pool, events, headgateVersion), events);
  }

  answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#server.answer(request, response);
  }

  start(port: number): void {
    this.#server.start(port);
  }

  close(): void {
    this.#server.close();
  }

  #tell({ who, from, action, outcome, detail }: AuditRecord): void {
    this.#log(outcome === 'done' ? 'info' : 'warn', 'page action', {
      ...{ who, from, action, outcome },
      detail: detail === '' ? undefined : detail,
    });
  }
}
