/** Reads a pooler's health from its console: Headgate's, or as much as PgBouncer's has of it. */
import { adviceForCode } from '../pooler/servers/dial-failure.js';
import type { ConsoleClient, ConsoleRow } from './console-client.js';
import { waitsForEver } from './doctor-config.js';
import { type Finding, problem, warning } from './doctor-findings.js';
import {
  clientLimit,
  openFailureCauses,
  permitFinding,
  pinsFinding,
  poolerPaused,
  waitFinding,
} from './doctor-metrics.js';

/** A transaction that has been idle for longer holds its connection for nothing. */
const longIdleMs = 10_000;
const longQueryMicros = 1_000_000;

export async function consoleFindings(client: ConsoleClient, now = Date.now()): Promise<Finding[]> {
  return [
    ...paused((await client.show('STATE')) ?? [], (await client.show('DATABASES')) ?? []),
    ...(await waits(client)),
    ...(await pins(client)),
    ...(await idleTransactions(client, now)),
    ...(await ofConfig(client)),
    ...(await statements(client)),
    ...(await fleet(client)),
  ];
}

function paused(state: readonly ConsoleRow[], databases: readonly ConsoleRow[]): Finding[] {
  const whole = state.filter(
    ({ key, value }) => value === 'yes' && (key === 'paused' || key === 'suspended'),
  );
  const single = databases.filter((row) => row['paused'] === '1');
  return [
    ...whole.map(({ key }) => poolerPaused(key ?? '')),
    ...(whole.length > 0 ? [] : single).map(({ name }) =>
      problem(
        'database_paused',
        `The database ${name} is paused.`,
        'SHOW DATABASES has paused 1 for it.',
        'PAUSE or KILL was given for it.',
        `RESUME ${name} on the console.`,
      ),
    ),
  ];
}

async function waits(client: ConsoleClient): Promise<Finding[]> {
  const pools = (await client.show('POOLS')) ?? [];
  return pools.flatMap((row) => {
    const seconds = Number(row['maxwait'] ?? 0) + Number(row['maxwait_us'] ?? 0) / 1e6;
    const who = `${row['user']}@${row['database']}`;
    const failed = openFailure(row, who);
    if (!(seconds > 1)) return failed;
    const { wait_cause: cause = '', waits_for: budget = '' } = row;
    const why = [cause, budget].filter((text) => text !== '').join(', ');
    return [
      ...failed,
      ...(cause === 'permit' ? [permitFinding(who, `SHOW POOLS: wait_cause is ${cause}.`)] : []),
      waitFinding(who, `${seconds.toFixed(1)} s`, why),
    ];
  });
}

/** The last attempt to open a server connection failed, and none has succeeded since. */
function openFailure(row: ConsoleRow, who: string): Finding[] {
  const { open_failure: word = '', open_error_code: code = '', open_error: error = '' } = row;
  if (word === '') return [];
  const [cause, change] = openFailureCauses[word] ?? ['Unknown.', 'See the log.'];
  return [
    problem(
      `not_opened_${word}`,
      `${who} can not open connections.`,
      `SHOW POOLS: ${error}`,
      adviceForCode(code) ?? cause,
      change,
    ),
  ];
}

async function pins(client: ConsoleClient): Promise<Finding[]> {
  const [rows, ledger] = [await client.show('PINS'), await client.show('LEDGER')];
  return (ledger ?? []).flatMap(({ database, user, limit }) => {
    const own = (rows ?? []).filter((row) => row['database'] === database && row['user'] === user);
    if (own.length === 0 || own.length < 0.5 * Number(limit)) return [];
    const reasons = [...new Set(own.map(({ reason }) => reason))].join(', ');
    return pinsFinding(`${user}@${database}`, own.length, Number(limit), reasons);
  });
}

/** Clients that have a server, run nothing, keep it by no pin, and have asked nothing for long. */
async function idleTransactions(client: ConsoleClient, now: number): Promise<Finding[]> {
  const [clients, running, pinned, pools] = [
    (await client.show('CLIENTS')) ?? [],
    await client.show('ACTIVE_QUERIES'),
    await client.show('PINS'),
    (await client.show('POOLS')) ?? [],
  ];
  if (running === undefined || pinned === undefined) return [];
  const busy = new Set([...running, ...pinned].map((row) => row['client']));
  const inSessions = new Set(
    pools.filter((row) => row['pool_mode'] === 'session').map((row) => `${row['user']}@${row['database']}`),
  );
  const consoles = ['headgate', 'pgbouncer'];
  const idle = clients.filter((row) => {
    const since = now - Date.parse((row['request_time'] ?? '').replace(' UTC', 'Z').replace(' ', 'T'));
    const isClient =
      !consoles.includes(row['database'] ?? '') && !inSessions.has(`${row['user']}@${row['database']}`);
    return isClient && row['state'] === 'active' && !busy.has(row['id']) && since > longIdleMs;
  });
  if (idle.length === 0) return [];
  const who = [...new Set(idle.map((row) => `${row['user']}@${row['database']} (client ${row['id']})`))];
  return [
    warning(
      'idle_in_transaction',
      'Transactions are open, and their clients do nothing.',
      `${idle.length} for more than ${longIdleMs / 1_000} s: ${who.slice(0, 5).join(', ')}.`,
      'A client does something else between BEGIN and COMMIT, or was forgotten; each takes a connection out of the pool.',
      'Set timeouts.idleTransactionTimeout; KILL_CLIENT ends one.',
    ),
  ];
}

async function ofConfig(client: ConsoleClient): Promise<Finding[]> {
  const config = (await client.show('CONFIG')) ?? [];
  const lists = (await client.show('LISTS')) ?? [];
  const most = Number(config.find(({ key }) => key === 'max_client_conn')?.['value'] ?? Number.NaN);
  const used = Number(lists.find(({ list }) => list === 'used_clients')?.['items'] ?? 0);
  const wait = config.find(({ key }) => key === 'query_wait_timeout')?.['value'];
  return [
    ...clientLimit(used, most),
    ...(Number(wait ?? Number.NaN) === 0 ? [waitsForEver('query_wait_timeout')] : []),
  ];
}

async function statements(client: ConsoleClient): Promise<Finding[]> {
  const rows = (await client.show('QUERY_STATS')) ?? [];
  return rows.flatMap((row) => {
    const [calls, errors] = [Number(row['calls']), Number(row['errors'])];
    const name = `"${(row['query'] ?? '').slice(0, 80)}" of ${row['user']}@${row['database']}`;
    if (calls >= 10 && errors > 0.1 * calls)
      return warning(
        'failing_statement',
        'A statement fails often.',
        `${name}: ${errors} of ${calls} calls failed.`,
        'The statement or its data are wrong, or it conflicts with others.',
        'Look for its error in the log of the program.',
      );
    const isSlow = calls >= 10 && Number(row['p99_time']) > longQueryMicros;
    if (!isSlow) return [];
    return warning(
      'slow_statement',
      'A statement is slow.',
      `${name}: p99 ${(Number(row['p99_time']) / 1e6).toFixed(1)} s, ${calls} calls.`,
      'It holds a server connection for as long as it runs.',
      'EXPLAIN it; an index, a smaller result, or a pool of its own.',
    );
  });
}

async function fleet(client: ConsoleClient): Promise<Finding[]> {
  const rows = (await client.show('FLEET')) ?? [];
  return rows.flatMap((row) => {
    const found: Finding[] = [];
    const server = row['server'] ?? '';
    if (['lost', 'failing'].includes(row['state'] ?? '') || row['rate_state'] === 'failing')
      found.push(
        problem(
          'coordinator_failing',
          `The tables that ${server} is shared by do not answer.`,
          `SHOW FLEET: state ${row['state']}, rate_state ${row['rate_state']}.`,
          'DynamoDB is throttled, unreachable, or the table or the permissions are missing.',
          'headgate dynamodb status names the error.',
        ),
      );
    if (Number(row['active']) > 0.9 * Number(row['limit'] || Number.NaN))
      found.push(
        problem(
          'fleet_limit_near',
          `The limit of all poolers on ${server} is nearly reached.`,
          `${row['active']} of ${row['limit']}.`,
          'All poolers together hold as many connections as they may.',
          'headgate dynamodb status shows who holds what; fewer connections, or a higher limit.',
        ),
      );
    if (Number(row['permit_wait_ms']) > 1_000)
      found.push(
        warning(
          'rate_too_slow',
          `Connections to ${server} wait until they may be opened.`,
          `SHOW FLEET: permit_wait_ms is ${row['permit_wait_ms']}.`,
          'All poolers together open connections as fast as they may.',
          'Look for connections that are closed and opened again; a longer lifetime, or a higher rate.',
        ),
      );
    return found;
  });
}
