/** A pooler of one process or several as a source for the page: numbers, lists, and console commands as actions. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { addLives } from '../../dashboard/lives.js';
import type {
  BudgetRecord,
  FleetRecord,
  Observation,
  RateRecord,
  SubjectState,
  WorkerRecord,
} from '../../dashboard/observation.js';
import {
  type Action,
  actionNames,
  type ListAnswer,
  type ListRequest,
  type Source,
} from '../../dashboard/source.js';
import type { FleetStats } from '../budgets/fleet.js';
import type { BudgetStats } from '../budgets/server-budgets.js';
import { weights } from '../config/fair-share-kinds.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { Command } from '../console/command.js';
import type { PoolerControls, PoolerView, RebalanceRecord } from '../console/pooler-view.js';
import { runCommand, type WantedRecords } from '../console/run-command.js';
import { ServingError } from '../errors.js';
import { mergeDigests } from './merge-page-digests.js';
import type { Digest } from './page-digest.js';
import { listConnections } from './page-lists.js';

/** State of the whole pooler. */
export interface PoolerFacts {
  readonly state: SubjectState;
  readonly pausedDatabases: readonly string[];
  readonly budgets: readonly BudgetStats[];
  readonly rebalances: readonly RebalanceRecord[];
  readonly fleet: readonly FleetStats[];
  readonly rates: readonly RateRecord[];
  readonly workers: readonly Omit<WorkerRecord, 'clients' | 'servers' | 'cpuMs' | 'memoryBytes'>[];
}

export interface PoolerSourceParts {
  readonly name: string;
  readonly version: string;
  readonly config: () => PoolerConfig;
  /** Digests of every process that serves clients. */
  readonly digests: (top: number) => readonly Digest[] | Promise<readonly Digest[]>;
  readonly facts: () => PoolerFacts;
  readonly view: (wanted: WantedRecords) => PoolerView | Promise<PoolerView>;
  readonly controls: PoolerControls;
}

/** Limit of budgets shown. There may be thousands of databases and users; the fullest are shown. */
const mostBudgets = 8;
const mostRebalances = 40;
/** Users of a budget up to which those are listed that hold and need nothing. */
export const mostQuietUsers = 50;

export class PoolerSource implements Source {
  readonly kind = 'pooler';
  readonly name: string;
  readonly actions = actionNames;
  readonly #parts: PoolerSourceParts;
  readonly #startedAt = Date.now();

  constructor(parts: PoolerSourceParts) {
    this.#parts = parts;
    this.name = parts.name;
  }

  async observe(top: number): Promise<Observation> {
    const { digests, facts, version, config } = this.#parts;
    const all = await digests(top);
    const digest = mergeDigests(all, top);
    const { budgets, rebalances, fleet, workers, ...ofPooler } = facts();
    return {
      at: Date.now(),
      startedAt: this.#startedAt,
      version,
      ...ofPooler,
      budgets: shownBudgets(budgets),
      callers: {
        ...digest.callers,
        loggingIn: digest.loggingIn,
        limit: config().limits.maxClientConn,
        longestWaitMs: Math.round(digest.longestWaitMs),
      },
      connections: digest.connections,
      counters: digest.counters,
      pools: digest.pools,
      poolCount: digest.poolCount,
      pins: { count: digest.pinCount, byReason: digest.pinsByReason, longest: digest.longestPins },
      reservoirs: [],
      lives: addLives(digest.lives),
      rebalances: rebalances.slice(0, mostRebalances),
      fleet: fleet.map(fleetRecord),
      workers: workers.map((worker) => ({
        ...worker,
        ...loadOf(all.find((one) => one.worker === worker.number)),
      })),
      statements: digest.statements,
      running: digest.running,
      dialError: digest.dialError,
    };
  }

  async list(request: ListRequest): Promise<ListAnswer> {
    const isClients = request.what === 'clients';
    return listConnections(
      await this.#parts.view({ clients: isClients, servers: !isClients, queries: false }),
      request,
    );
  }

  async act(action: Action, signal: AbortSignal): Promise<string> {
    const { view, controls } = this.#parts;
    // Databases and states in the command are resolved as on the console.
    const seen = await view({ clients: false, servers: false, queries: false });
    const command = commandOf(action, this.#parts.config());
    const done = Promise.resolve(runCommand(command, { role: 'admin', view: seen, controls }, signal));
    if (command.verb !== 'shutdown') return (await done).tag;
    // Draining takes as long as the last transaction and ends the page, so the answer does not wait for it; the page shows the state.
    done.catch(() => {});
    await Promise.race([done, nextTurn()]);
    return 'SHUTDOWN';
  }

  close(): void {}
}

function loadOf(
  digest: Digest | undefined,
): Pick<WorkerRecord, 'clients' | 'servers' | 'cpuMs' | 'memoryBytes'> {
  if (digest === undefined) return { clients: 0, servers: 0, cpuMs: 0, memoryBytes: 0 };
  const { callers, connections, loggingIn, cpuMs, memoryBytes } = digest;
  const { opening, idle, active, checking, closing } = connections;
  return {
    clients: callers.active + callers.waiting + callers.idle + loggingIn,
    servers: opening + idle + active + checking + closing,
    ...{ cpuMs, memoryBytes },
  };
}

function commandOf(action: Action, config: PoolerConfig): Command {
  const { name, database, client = 0, key = '', value = '' } = action;
  switch (name) {
    case 'kill_client':
      return { verb: 'kill_client', id: client };
    case 'set':
      return { verb: 'set', key, value };
    case 'set_weight':
      return weightCommand(config, action);
    case 'drain':
      return { verb: 'shutdown', mode: 'wait_for_servers' };
    case 'disable':
    case 'enable':
      return { verb: name, database: database ?? '' };
    default:
      return { verb: name, database };
  }
}

/** SET has the weights of all users at once: those of the others stay as they are. */
function weightCommand({ fairShares, users }: PoolerConfig, { user = '', value = '' }: Action): Command {
  if (users.get(user)?.weight !== undefined)
    throw new ServingError(
      `The weight of ${user} is in users.${user}.weight of the configuration. Change it there.`,
    );
  if (!/^\d{1,7}(?:\.\d{1,3})?$/.test(value))
    throw new ServingError('A weight is a number from 0.001 to 1000000.');
  const changed = new Map([...fairShares.weights, [user, Number(value)]]);
  if ([...changed.keys()].some((name) => /[,=]/.test(name) || name.trim() !== name))
    throw new ServingError(
      'A user with a comma, = or a space in its name has its weight in the configuration only.',
    );
  return { verb: 'set', key: 'connpool_user_weights', value: weights.toIni(changed) };
}

/** All budgets that apply to everyone, and the fullest budgets of one database or one user. */
function shownBudgets(all: readonly BudgetStats[]): BudgetRecord[] {
  const isOfAll = ({ budget }: BudgetStats): boolean => budget === 'total' || budget.startsWith('server ');
  const fullness = ({ held, capacity, waiting }: BudgetStats): number => waiting * 1e3 + held / capacity;
  const ofAll = all.filter(isOfAll);
  const others = all.filter((budget) => !isOfAll(budget));
  others.sort((one, other) => fullness(other) - fullness(one));
  return [...ofAll, ...others].slice(0, mostBudgets).map(budgetRecord);
}

function budgetRecord({
  budget,
  users,
  unlisted,
  capacity,
  held,
  exceeded,
  peak,
  waiting,
  recalls,
}: BudgetStats): BudgetRecord {
  return {
    name: budget,
    parts: budget.startsWith('user ') ? 'databases' : 'users',
    ...{ capacity, held, exceeded, peak, waiting, recalls },
    unlisted,
    users: users.map((user) => ({
      user: user.user,
      held: user.held,
      demand: user.demand,
      share: user.share,
      weight: user.weight,
      recalled: user.recalled,
      waitedMs: Math.round(user.waitedMs),
    })),
  };
}

function fleetRecord({ server, instance, leases, rate }: FleetStats): FleetRecord {
  return {
    server,
    instance,
    state: leases?.state ?? rate?.state ?? 'unused',
    limit: leases?.limit ?? 0,
    active: leases?.active ?? 0,
    owned: leases?.owned ?? 0,
    held: leases?.held ?? 0,
    waiting: leases?.waiting ?? 0,
    instances: leases?.instances ?? 0,
  };
}
