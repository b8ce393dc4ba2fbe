/** The tree of troubleshooting on the metrics of a program's pools, or of a pooler: what fails, why, and what to change. */
import { endsOfLife } from '../core/reasons.js';
import { type Finding, problem, warning } from './doctor-findings.js';
import type { MetricLooks, MetricSample } from './metric-samples.js';

export function metricFindings(looks: MetricLooks): Finding[] {
  return [
    ...notOpened(looks),
    ...reservoirLow(looks),
    ...foundEmpty(looks),
    ...discards(looks),
    ...permits(looks),
    ...lifetimesExceedRate(looks),
    ...pools(looks),
    ...fleet(looks),
    ...pooler(looks),
  ];
}

/** The owner of a series, for people. */
function of({ labels }: MetricSample): string {
  const { pool, service, user, database, server } = labels;
  if (user !== undefined && database !== undefined) return `${user}@${database}`;
  return pool ?? service ?? server ?? 'the pooler';
}

/** Why connections are not opened, by its word, and what to change. */
export const openFailureCauses: Readonly<Record<string, readonly [cause: string, change: string]>> = {
  rate_limit: [
    'The rate limiter lets connections be opened too slowly, or the server finds that they are opened too fast.',
    'Raise DSQL_CONNECTION_RATE_LIMIT (rateLimiter, dsql.connectionRate) up to what the cluster allows; restart services one after the other; a longer lifetime needs fewer connections.',
  ],
  token_provider: [
    'There is no IAM token to connect with: credentials, permissions, region or clock.',
    'aws sts get-caller-identity; allow dsql:DbConnect or dsql:DbConnectAdmin; set AWS_REGION; synchronise the clock.',
  ],
  lease_acquire: [
    'The budget above the pool is used up, or the table of leases can not be asked.',
    'headgate dynamodb status shows who holds what; fewer connections per service, or a higher limit.',
  ],
  connection_open: [
    'The server can not be reached, or does not let the pool in.',
    'Look at the log for its error; headgate serve --check --connect; security groups, endpoint, password.',
  ],
};

function notOpened(looks: MetricLooks): Finding[] {
  const names = ['headgate_pool_refill_failures_total', 'headgate_pooler_open_failures_total'];
  return names.flatMap((name) =>
    looks.rates(name).flatMap((series) => {
      const word = series.labels['cause'] ?? '';
      const [cause, change] = openFailureCauses[word] ?? ['Unknown.', 'See the log.'];
      if (!(series.value > 0)) return [];
      const evidence = `${name}{cause="${word}"} grows by ${series.value.toFixed(2)} a second.`;
      return problem(
        `not_opened_${word}`,
        `${of(series)} can not open connections.`,
        evidence,
        cause,
        change,
      );
    }),
  );
}

function reservoirLow(looks: MetricLooks): Finding[] {
  return looks.samples('dsql_reservoir_target').flatMap((target) => {
    const { labels } = target;
    const size = looks.value('dsql_reservoir_size', labels) ?? 0;
    const inUse = looks.value('dsql_pool_in_use', labels) ?? 0;
    const most = looks.value('dsql_pool_max_open', labels) ?? target.value;
    const room = Math.min(target.value, Math.max(0, most - inUse));
    if (!(size < 0.5 * room)) return [];
    return warning(
      'reservoir_low',
      `The reservoir of ${of(target)} is less than half full.`,
      `dsql_reservoir_size is ${size}, and there is room for ${room} (target ${target.value}).`,
      'It is not filled yet, or connections can not be opened as fast as they end: see the other findings.',
      'Wait for the first fill; else raise the rate or the lifetime.',
    );
  });
}

function foundEmpty(looks: MetricLooks): Finding[] {
  return looks.rates('dsql_reservoir_empty_total').flatMap((series) => {
    if (!(series.value > 0)) return [];
    const evidence = `dsql_reservoir_empty_total grows by ${series.value.toFixed(1)} a second.`;
    return warning(
      'reservoir_empty',
      `Callers of ${of(series)} find the reservoir empty.`,
      evidence,
      'More connections are taken at once than are kept ready, or they are held for long.',
      'Raise DSQL_RESERVOIR_TARGET_READY and the limit, or shorten transactions. During the first fill it passes.',
    );
  });
}

const discardRemedies: Readonly<Record<string, readonly [cause: string, change: string]>> = {
  insufficient_remaining_lifetime: [
    'The guard window is large for the lifetime.',
    'Reduce DSQL_RESERVOIR_GUARD_WINDOW, but not below the longest transaction, or raise the lifetime.',
  ],
  expired_on_checkout: ['Connections lie in the reservoir until they end.', 'Keep fewer ready.'],
  expired_on_return: ['Transactions are longer than what is left of a life.', 'Raise the lifetime.'],
  reservoir_full: ['More are opened than are used.', 'Keep fewer ready: reduce the target.'],
  lease_recalled: [
    'Users of one budget take connections from each other, since together they need more than it has.',
    'Raise fairShares.capacity, or fairShares.turn; shorten transactions.',
  ],
  over_limit: ['The limit was lowered.', 'Nothing, once it is reached.'],
  broken: ['Connections break.', 'Look at the server, and at what closes idle connections on the way.'],
  released_with_error: ['Programs give connections back with an error.', 'Look for the errors in the log.'],
};
/** Ends that are as they should be. */
const ordinary = ['drained', 'idle_timeout', 'max_lifetime', 'max_uses', 'expiring_soon_on_scan'];

function discards(looks: MetricLooks): Finding[] {
  const names = ['headgate_pool_discards_total', 'headgate_pooler_discards_total'];
  return names.flatMap((name) =>
    looks.rates(name).flatMap((series) => {
      const reason = series.labels['reason'] ?? '';
      if (!(series.value > 5) || ordinary.includes(reason)) return [];
      const [cause, change] = discardRemedies[reason] ?? [
        `The reason is ${reason}.`,
        'The table of reasons in docs/observability.md says what it means.',
      ];
      const evidence = `${name}{reason="${reason}"} grows by ${series.value.toFixed(1)} a second.`;
      return warning('many_discards', `${of(series)} discards many connections.`, evidence, cause, change);
    }),
  );
}

function permits(looks: MetricLooks): Finding[] {
  const names = ['headgate_pool_waiting_for_permit', 'headgate_pooler_waiting_for_permit'];
  return names.flatMap((name) =>
    looks.samples(name).flatMap((series) => {
      if (!(series.value > 0)) return [];
      return permitFinding(of(series), `${name} is ${series.value}.`);
    }),
  );
}

/** Permits are short all the time, and most connections that are opened replace those whose life is over. */
function lifetimesExceedRate(looks: MetricLooks): Finding[] {
  return ['headgate_pool', 'headgate_pooler'].flatMap((kind) =>
    looks.rates(`${kind}_permit_wait_seconds_total`).flatMap((series) => {
      const isOfPool = ({ labels }: MetricSample) =>
        Object.entries(series.labels).every(([label, word]) => labels[label] === word);
      const ended = looks
        .rates(`${kind}_discards_total`)
        .filter(
          (one) => isOfPool(one) && (endsOfLife as readonly string[]).includes(one.labels['reason'] ?? ''),
        )
        .reduce((sum, { value }) => sum + value, 0);
      const opened = looks.rates(`${kind}_opened_total`).find(isOfPool)?.value ?? 0;
      if (!(series.value > 0.5 && ended > 0.5 * opened && ended > 0)) return [];
      return problem(
        'lifetime_exceeds_rate',
        `Connections of ${of(series)} end faster than they may be opened.`,
        `${ended.toFixed(1)} connections a second reach the end of their life, ${opened.toFixed(1)} are opened, and permits are waited for ${Math.round(100 * series.value)} % of the time.`,
        'Every connection is opened anew once in its lifetime, and the rate is too low for that.',
        'A longer lifetime, smaller pools, or a higher rate if the server allows it.',
      );
    }),
  );
}

function pools(looks: MetricLooks): Finding[] {
  // Half-open between two attempts, it is as broken.
  const open = looks.samples('headgate_pool_breaker').filter(({ labels, value }) => {
    return labels['state'] === 'closed' && value === 0;
  });
  const paused = looks.samples('headgate_pool_state').filter(({ labels, value }) => {
    return labels['state'] === 'paused' && value === 1;
  });
  const timeouts = looks.rates('headgate_pool_timeouts_total');
  const saturated = looks.samples('headgate_pool_waiting').filter((series) => {
    const { service = '', pool = '' } = series.labels;
    const limit = looks.value('headgate_pool_limit', { service, pool }) ?? Number.POSITIVE_INFINITY;
    const inUse = looks.value('headgate_pool_connections', { service, pool, state: 'in_use' }) ?? 0;
    const gaveUp = timeouts.find(({ labels }) => labels['service'] === service && labels['pool'] === pool);
    return (series.value > 0 || (gaveUp?.value ?? 0) > 0) && inUse >= limit;
  });
  const leaks = looks.rates('headgate_pool_leaks_total').filter(({ value }) => value > 0);
  return [
    ...open.map((series) =>
      problem(
        'breaker_open',
        `${of(series)} keeps failing to connect.`,
        'headgate_pool_breaker{state="closed"} is 0.',
        'Dials fail one after the other: single attempts are made, further and further apart.',
        'The log has the error of the last one.',
      ),
    ),
    ...paused.map((series) =>
      problem(
        'paused',
        `${of(series)} is paused.`,
        'headgate_pool_state{state="paused"} is 1.',
        'The program called pause().',
        'Call resume().',
      ),
    ),
    ...saturated.map((series) =>
      warning(
        'pool_used_up',
        `Callers of ${of(series)} wait or give up, and all its connections are in use.`,
        `headgate_pool_waiting is ${series.value}, and all connections that the limit allows are in use.`,
        'Connections are held for long, are not given back, or are too few.',
        'Look for clients that are not released (leakThresholdMillis), shorten transactions, or raise max.',
      ),
    ),
    ...leaks.map((series) =>
      problem(
        'leaks',
        `${of(series)} does not get connections back.`,
        `headgate_pool_leaks_total grows by ${series.value.toFixed(2)} a second.`,
        'A program takes clients and does not release them.',
        'The log says where they were taken.',
      ),
    ),
  ];
}

function fleet(looks: MetricLooks): Finding[] {
  const near = looks.samples('dsql_distributed_conn_lease_active').flatMap((active) => {
    const limit = looks.value('dsql_distributed_conn_lease_limit', active.labels) ?? Number.NaN;
    if (!(active.value > 0.9 * limit)) return [];
    return problem(
      'fleet_limit_near',
      `The limit on the connections of all instances${serverOf(active)} is nearly reached.`,
      `dsql_distributed_conn_lease_active is ${active.value} of ${limit}.`,
      'All instances together hold as many connections as they may, or a crashed one is not swept yet.',
      'headgate dynamodb status shows who holds what; wait for the sweep, scale down, or raise the limit.',
    );
  });
  const states = [
    ['headgate_coordinator_state', 'leases', 'lost'],
    ['headgate_coordinator_state', 'leases', 'failing'],
    ['headgate_rate_state', 'permits', 'failing'],
  ] as const;
  const failing = states.flatMap(([name, what, state]) => {
    const all = looks.samples(name).filter(({ labels, value }) => labels['state'] === state && value === 1);
    return all.map((series) =>
      problem(
        'coordinator_failing',
        `The table of ${what}${serverOf(series)} does not answer.`,
        `${name}{state="${state}"} is 1 for ${of(series)}.`,
        'DynamoDB is throttled, unreachable, or the table or the permissions are missing.',
        'headgate dynamodb status names the error; on-demand billing, the table, dynamodb:* permissions of headgate dynamodb policy.',
      ),
    );
  });
  return [...near, ...failing];
}

/** A pooler's fleet has limits for each server. */
function serverOf({ labels }: MetricSample): string {
  return labels['server'] === undefined ? '' : ` for ${labels['server']}`;
}

function pooler(looks: MetricLooks): Finding[] {
  const waits = looks.samples('headgate_pooler_longest_wait_seconds').filter(({ value }) => value > 1);
  const pinned = looks.samples('headgate_pooler_server_limit').flatMap((limit) => {
    const { database = '', user = '' } = limit.labels;
    const all = looks
      .samples('headgate_pooler_clients_pinned')
      .filter(({ labels }) => labels['database'] === database && labels['user'] === user);
    const count = all.reduce((sum, { value }) => sum + value, 0);
    if (!(count > 0) || count < 0.5 * limit.value) return [];
    const reasons = all
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => `${value} ${labels['reason']}`);
    return pinsFinding(of(limit), count, limit.value, reasons.join(', '));
  });
  const state = looks.samples('headgate_pooler_state').find(({ labels, value }) => {
    return value === 1 && labels['state'] !== 'active';
  });
  return [
    ...waits.map((series) => waitFinding(of(series), `${series.value.toFixed(1)} s`)),
    ...pinned,
    ...(state === undefined ? [] : [poolerPaused(state.labels['state'] ?? '')]),
    ...clientLimit(
      looks.value('headgate_pooler_connected_clients') ?? 0,
      looks.value('headgate_pooler_client_limit') ?? Number.NaN,
    ),
  ];
}

export function clientLimit(used: number, most: number): Finding[] {
  if (!(used > 0.9 * most)) return [];
  return [
    problem(
      'client_limit_near',
      'The pooler has nearly as many clients as it may have.',
      `${used} of max_client_conn ${most}.`,
      'Programs keep more connections open than was expected, or do not close them.',
      'Raise limits.maxClientConn, or set timeouts.clientIdleTimeout.',
    ),
  ];
}

/** `cause`: the word for what the first waits for, and the budget that is short, where they are known. */
export function waitFinding(who: string, wait: string, cause = ''): Finding {
  return warning(
    'clients_wait',
    `Clients of ${who} wait long for a server connection.`,
    `The first has waited for ${wait}${cause === '' ? '' : `: ${cause}`}.`,
    'All connections of the pool are in use, or none can be opened: see the other findings.',
    'SHOW ACTIVE_QUERIES tells what runs; shorter transactions, a larger pool, or a faster server.',
  );
}

export function pinsFinding(who: string, count: number, limit: number, reasons: string): Finding {
  return warning(
    'pins',
    `Clients that keep their server connection use up the pool of ${who}.`,
    `${count} of ${limit} are pinned: ${reasons}.`,
    'LISTEN, temporary tables, session locks and the like bind a client to one server connection until it leaves.',
    'SHOW PINS tells who; give such clients a pool of their own in session mode, or do without.',
  );
}

export function permitFinding(who: string, evidence: string): Finding {
  return warning(
    'rate_too_slow',
    `Callers of ${who} wait until a connection may be opened.`,
    evidence,
    'The rate limiter lets connections be opened more slowly than callers come.',
    'Raise the rate up to what the server allows, keep more connections ready, or let them live longer.',
  );
}

export function poolerPaused(state: string): Finding {
  return problem(
    'pooler_paused',
    `The pooler is ${state.replaceAll('_', ' ')}.`,
    `Its state is ${state}.`,
    'PAUSE, SUSPEND, KILL or a signal was given.',
    'RESUME on its console.',
  );
}
