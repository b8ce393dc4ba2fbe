/** Finds what holds things up now, in one sentence with its numbers, and what to do about it. The first that applies is told. */
import { formatDuration } from '../kernel/duration.js';
import type { BudgetRecord, Observation, PoolRecord } from './observation.js';
import type { Verdict } from './snapshot.js';

/** Counts of the last seconds, beside the numbers of now. */
export interface Lately {
  readonly openFailures: number;
  readonly waitTimeouts: number;
  readonly foundEmpty: number;
}

type Rule = (now: Observation, lately: Lately) => Verdict | undefined;

const nearlyFull = 0.9;

export function verdictOf(now: Observation, lately: Lately): Verdict {
  for (const rule of rules) {
    const verdict = rule(now, lately);
    if (verdict !== undefined) return verdict;
  }
  return nothingBinds(now);
}

const rules: readonly Rule[] = [
  exceeded,
  ending,
  paused,
  serverFails,
  databasePaused,
  budgetBinds,
  poolSizeBinds,
  rateBinds,
  waitsOtherwise,
  reservoirLow,
  clientsNearLimit,
];

function exceeded({ budgets }: Observation): Verdict | undefined {
  const over = budgets.find((budget) => budget.exceeded > 0);
  return (
    over && {
      level: 'bad',
      what: 'exceeded',
      sentence: `Budget ${over.name} was exceeded ${times(over.exceeded)}: ${over.held} of ${over.capacity} connections are held.`,
      advice: 'This must never happen. Please report it with the log of this moment.',
    }
  );
}

function ending({ state, callers, connections }: Observation): Verdict | undefined {
  if (state !== 'draining' && state !== 'closed') return undefined;
  return {
    level: 'busy',
    what: state,
    sentence:
      state === 'closed'
        ? 'It has ended: no connection is left.'
        : `It is shutting down: ${callersText(callers.active, 'hold')} ${connectionsText(connections.active)}, new ones are refused.`,
    advice: 'Wait for the last transactions, or stop it at once with a second signal.',
  };
}

function paused({ state, callers }: Observation): Verdict | undefined {
  if (state !== 'paused' && state !== 'suspended') return undefined;
  return {
    level: 'bad',
    what: state,
    sentence: `It is ${state}: ${callersText(callers.waiting, 'wait')} until it is resumed.`,
    advice: 'Resume it when the maintenance is over.',
  };
}

function serverFails({ dialError, callers }: Observation, { openFailures }: Lately): Verdict | undefined {
  if (dialError === undefined || openFailures === 0) return undefined;
  return {
    level: 'bad',
    what: 'server',
    sentence: `Connections to the server can't be opened: ${withoutStop(dialError)}. ${capital(callersText(callers.waiting, 'wait'))}.`,
    advice: 'Check that the server runs, can be reached, and takes the password and as many connections.',
  };
}

function databasePaused({ pausedDatabases, pools }: Observation): Verdict | undefined {
  const [name] = pausedDatabases;
  if (name === undefined) return undefined;
  const waiting = pools.reduce((sum, pool) => sum + (pool.isPaused ? pool.waiting : 0), 0);
  return {
    level: waiting > 0 ? 'bad' : 'busy',
    what: 'paused',
    sentence: `Database ${name}${pausedDatabases.length > 1 ? ` and ${pausedDatabases.length - 1} more` : ''} is paused: ${callersText(waiting, 'wait')}.`,
    advice: `Resume ${name} when the maintenance is over.`,
  };
}

/** The full budget with most waiters, if any has waiters. */
function budgetBinds({ budgets, callers, pools }: Observation): Verdict | undefined {
  const full = budgets
    .filter(({ parts, waiting, held, capacity }) => parts !== 'states' && waiting > 0 && held >= capacity)
    .sort((one, other) => other.waiting - one.waiting)[0];
  if (full === undefined || callers.waiting === 0) return undefined;
  const { name, held, capacity } = full;
  return {
    level: 'busy',
    what: 'budget',
    sentence: `Budget ${name} binds: ${held} of ${capacity} connections are held, ${waitText(callers.waiting, callers.longestWaitMs, pools)}.${whoWaits(full)}`,
    advice: 'Users take turns by their weights. For shorter waits: shorter transactions, or a higher limit.',
  };
}

/** Users that wait for their share, and users above theirs. */
function whoWaits({ users }: BudgetRecord): string {
  const least = users
    .filter(({ waitedMs, held, share }) => waitedMs > 0 && held < share)
    .sort((one, other) => other.waitedMs - one.waitedMs)[0];
  if (least === undefined) return '';
  const above = users
    .filter(({ held, share }) => held > share)
    .sort((one, other) => other.held - other.share - (one.held - one.share))[0];
  const owed = ` ${least.user} has ${least.held} of its share of ${least.share}`;
  return above === undefined
    ? `${owed}.`
    : `${owed}; ${above.user} is giving back ${above.held - above.share}.`;
}

function poolSizeBinds({ pools, callers }: Observation): Verdict | undefined {
  const full = pools
    .filter(({ waiting, connections, limit }) => waiting > 0 && connections >= limit)
    .sort((one, other) => other.waiting - one.waiting)[0];
  if (full === undefined) return undefined;
  return {
    level: 'busy',
    what: 'pool_size',
    sentence: `The size of pool ${nameOf(full)} binds: ${full.active} of ${full.limit} connections are in use, ${waitText(callers.waiting, callers.longestWaitMs, pools)}.`,
    advice: 'Look for callers that keep connections for long; raise the size if the server can take more.',
  };
}

function rateBinds({ rates, callers, connections }: Observation): Verdict | undefined {
  const slow = rates.find(({ tokens }) => tokens < 1);
  if (slow === undefined || (callers.waiting === 0 && connections.opening === 0)) return undefined;
  return {
    level: 'busy',
    what: 'rate',
    sentence: `The rate of opening connections binds: ${round(slow.rate)} a second to ${slow.server}, none saved; ${callersText(callers.waiting, 'wait')}.`,
    advice: 'Keep more connections ready, or let them live longer, so that fewer have to be opened.',
  };
}

function waitsOtherwise({ callers, pools, connections }: Observation): Verdict | undefined {
  if (callers.waiting === 0) return undefined;
  const short = pools.find((pool) => pool.shortage !== undefined);
  const why =
    shortageOf(short) ??
    (connections.opening > 0
      ? `${connectionsText(connections.opening)} being opened`
      : 'for connections that are about to come back');
  return {
    level: 'busy',
    what: short === undefined ? 'opening' : 'budget',
    sentence: `${capital(waitText(callers.waiting, callers.longestWaitMs, pools))}: ${withoutStop(why)}.`,
    advice: 'This is normal for a moment. If it stays, look at the pools below.',
  };
}

/** For a pool in a program, what the pool does; for a pooler, a sentence about its budget. */
function shortageOf(pool: PoolRecord | undefined): string | undefined {
  return pool?.database === '' ? `pool ${pool.user} ${pool.shortage}` : pool?.shortage;
}

function reservoirLow({ reservoirs }: Observation, { foundEmpty }: Lately): Verdict | undefined {
  const low = reservoirs.find(({ ready, lowWatermark, isFilled }) => isFilled && ready < lowWatermark);
  if (low === undefined) return undefined;
  return {
    level: foundEmpty > 0 ? 'bad' : 'busy',
    what: 'reservoir',
    sentence: `The reservoir of ${low.pool} is low: ${low.ready} of ${low.target} connections are ready, the watermark is ${low.lowWatermark}.`,
    advice:
      'It fills at the rate below. If it is low for long, the rate or the lifetime is too small for the load.',
  };
}

function clientsNearLimit({ callers }: Observation): Verdict | undefined {
  const { active, waiting, idle, limit } = callers;
  const connected = active + waiting + idle;
  if (!Number.isFinite(limit) || connected < nearlyFull * limit) return undefined;
  return {
    level: 'busy',
    what: 'clients',
    sentence: `Places for clients run out: ${connected} of ${limit} are taken.`,
    advice: 'Raise max_client_conn, or look for programs that open more connections than they use.',
  };
}

function nothingBinds({ budgets, connections, pools }: Observation): Verdict {
  const used = connections.active;
  const widest = budgets.find(({ parts }) => parts !== 'states') ?? budgets[0];
  const of = widest === undefined ? '' : ` of ${widest.capacity}`;
  return {
    level: 'good',
    what: 'nothing',
    sentence:
      pools.length === 0
        ? 'Nothing binds: no client has asked for anything yet.'
        : `Nothing binds: ${used}${of} connections ${used === 1 ? 'is' : 'are'} in use and no caller waits.`,
    advice: 'Nothing to do.',
  };
}

function waitText(waiting: number, longestWaitMs: number, pools: readonly PoolRecord[]): string {
  const longest = longestWaitMs >= 1 ? ` (the longest for ${formatDuration(coarse(longestWaitMs))})` : '';
  const users = new Set(pools.filter((pool) => pool.waiting > 0).map(({ user }) => user));
  const of = users.size > 1 ? ` of ${users.size} users` : '';
  return `${callersText(waiting, 'wait', of)}${longest}`;
}

/** Two digits are enough for people, and hold still longer. */
function coarse(ms: number): number {
  return ms < 1_000
    ? Math.round(ms)
    : ms < 60_000
      ? Math.round(ms / 100) * 100
      : Math.round(ms / 1_000) * 1_000;
}

function callersText(count: number, verb: 'wait' | 'hold', of = ''): string {
  if (count === 0) return `no caller ${verb}s`;
  return count === 1 ? `1 caller ${verb}s` : `${count} callers${of} ${verb}`;
}

function connectionsText(count: number): string {
  return count === 1 ? '1 connection' : `${count} connections`;
}

function nameOf({ user, database }: PoolRecord): string {
  return database === '' ? user : `${user}@${database}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function round(value: number): string {
  return value >= 10 ? String(Math.round(value)) : value.toFixed(1);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function withoutStop(text: string): string {
  return text.trimEnd().replace(/(?<!\.)\.+$/, '');
}
