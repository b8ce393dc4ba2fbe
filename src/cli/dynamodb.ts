/** `headgate dynamodb`: the table in which a fleet's limit is kept. */
import {
  type EndpointState,
  openTable,
  policyFor,
  readTable,
  repairCounter,
  setUpTable,
} from '../coordination/dynamodb/administration.js';
import type { Table } from '../coordination/dynamodb/table.js';
import { statusText } from './dynamodb-status.js';
import { readOptions, wrongAction } from './options.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

const help = `Usage: headgate dynamodb setup|status|reconcile|policy --table NAME [options]

  setup       creates the table (on-demand billing, TTL), and waits until it can be used; safe to repeat
  status      shows who holds how many slots and until when, and whether the counter is their sum
  reconcile   says which counters are wrong; with --yes, puts them right
  policy      prints the IAM policy that a program needs; with --setup, the one that setup needs

  --table NAME        the table
  --region REGION     default: as AWS's tools find it
  --endpoint-url URL  another address than AWS's, as of DynamoDB Local
  --endpoint NAME     only what is kept for this server
  --json              status: as JSON
  --yes               reconcile: does it
  --account NUMBER    policy: the AWS account; default: any
  --setup             policy: the one that setup needs

Ends with 0 when all is well, with 1 when a counter is wrong, with 2 when it was called in a wrong way or DynamoDB could not
be asked.
`;

const kinds = {
  table: 'text',
  region: 'text',
  'endpoint-url': 'text',
  endpoint: 'text',
  json: 'flag',
  yes: 'flag',
  account: 'text',
  setup: 'flag',
} as const;

type Values = ReturnType<typeof readOptions<typeof kinds>>['values'];

export const dynamodbCommand = {
  summary: "set up and look after the table of a fleet's limit",
  help,
  run(args: readonly string[], terminal: Terminal): Promise<number> {
    const { values, positionals } = readOptions(args, kinds);
    const [name = '', ...others] = positionals;
    if (others.length > 0)
      throw new UsageError(`dynamodb does one thing at a time, not ${positionals.join(', ')}`);
    const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
    if (action === undefined) throw wrongAction('dynamodb', Object.keys(actions), name);
    const { table } = values;
    if (table === undefined) throw new UsageError(`${name} needs --table`);
    return action({ ...values, table }, terminal);
  },
};

type Action = (values: Values & { readonly table: string }, terminal: Terminal) => Promise<number>;

const actions: Readonly<Record<string, Action>> = { setup, status, reconcile, policy };

function whereOf({ table, region, 'endpoint-url': endpointUrl }: Values & { readonly table: string }) {
  return { table, region, endpointUrl };
}

async function setup(values: Values & { readonly table: string }, terminal: Terminal): Promise<number> {
  const result = await setUpTable(whereOf(values), (line) => terminal.err(`headgate: ${line}\n`));
  const table = result.table === 'created' ? 'is created' : 'was there already';
  const ttl = result.ttl === 'enabled' ? 'is switched on' : 'was on already';
  terminal.out(`The table ${values.table} ${table}; its TTL on ttl_epoch ${ttl}.\n`);
  return exitCodes.good;
}

async function status(values: Values & { readonly table: string }, terminal: Terminal): Promise<number> {
  const { nowMs, endpoints } = await stateOf(openTable(whereOf(values)), values);
  if (values.json) terminal.out(`${JSON.stringify({ nowMs, endpoints }, undefined, 2)}\n`);
  else terminal.out(statusText(endpoints, nowMs));
  return endpoints.some(({ drift }) => drift !== 0) ? exitCodes.failed : exitCodes.good;
}

async function stateOf(table: Table, { endpoint }: Values): ReturnType<typeof readTable> {
  const state = await readTable(table);
  const endpoints = state.endpoints.filter((found) => endpoint === undefined || found.endpoint === endpoint);
  return { ...state, endpoints };
}

/** A counter that has moved since it was read is looked at again: what was wrong may have been a slot on its way. */
const attempts = 5;

async function reconcile(values: Values & { readonly table: string }, terminal: Terminal): Promise<number> {
  const table = openTable(whereOf(values));
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const { nowMs, endpoints } = await stateOf(table, values);
    const wrong = endpoints.filter(({ drift }) => drift !== 0);
    if (wrong.length === 0) {
      terminal.out(attempt === 1 ? 'Every counter is the sum of its leases.\n' : 'Done.\n');
      return exitCodes.good;
    }
    for (const state of wrong) {
      terminal.out(sayWrong(state, values.yes === true));
      if (values.yes) await repairCounter(table, state, nowMs);
    }
    if (!values.yes) {
      terminal.out('Nothing was changed. With --yes it is.\n');
      return exitCodes.failed;
    }
  }
  terminal.err('headgate: the counter moved every time; the instances themselves will put it right.\n');
  return exitCodes.failed;
}

function sayWrong({ endpoint, counter, drift }: EndpointState, isDone: boolean): string {
  const sum = counter.active - drift;
  const verb = isDone ? 'is set' : 'would be set';
  return `${endpoint}: the counter says ${counter.active}, and the leases add up to ${sum}; it ${verb} to ${sum}.\n`;
}

function policy(values: Values & { readonly table: string }, terminal: Terminal): Promise<number> {
  const arn = `arn:aws:dynamodb:${values.region ?? '*'}:${values.account ?? '*'}:table/${values.table}`;
  terminal.out(`${JSON.stringify(policyFor(values.setup ? 'setup' : 'use', arn), undefined, 2)}\n`);
  return Promise.resolve(exitCodes.good);
}
