// The bank that the workload works for: accounts, a ledger with a checksum in each line, and the book of what must be in it.
import { createHash } from 'node:crypto';
import type pg from 'pg';

/** The required outcome of a transfer. */
export type Fate = 'gone' | 'either' | 'kept';

export interface Transfer {
  /** Its own, in both databases: `CLIENT-NUMBER`. */
  readonly id: string;
  readonly client: number;
  readonly number: number;
  readonly source: number;
  readonly target: number;
  readonly amount: number;
  readonly checksum: string;
}

export const accounts = 24;
const opening = 1_000_000;
export const schemas: readonly string[] = ['north', 'south', 'east'];

/** Everything that a database of the workload has; `roles` are its users. */
export async function openBank(admin: pg.Client, roles: readonly string[]): Promise<void> {
  await admin.query(`
    create table public.account (id int primary key, balance bigint not null);
    insert into public.account select n, ${opening} from generate_series(0, ${accounts - 1}) n;
    create table public.ledger (id text primary key, client int, number int, source int, target int, amount int, checksum text);
    create function public.transfer(id text, client int, number int, source int, target int, amount int, checksum text)
      returns text language plpgsql as $$
      begin
        update public.account a set balance = balance + case a.id when source then -amount else amount end
          where a.id = least(source, target);
        update public.account a set balance = balance + case a.id when source then -amount else amount end
          where a.id = greatest(source, target);
        insert into public.ledger values (id, client, number, source, target, amount, checksum);
        return id;
      end $$;
    grant all on all tables in schema public to ${roles.join(', ')};
    grant create on schema public to ${roles.join(', ')};`);
  for (const schema of schemas)
    await admin.query(`
      create schema ${schema};
      create table ${schema}.place (name text);
      insert into ${schema}.place values ('${schema}');
      grant usage on schema ${schema} to ${roles.join(', ')};
      grant select on ${schema}.place to ${roles.join(', ')};`);
}

/** The required outcome of each transfer, in one database. */
export class Book {
  readonly #fates = new Map<string, { readonly transfer: Transfer; fate: Fate }>();

  /** A transfer that nobody has tried to commit yet: whatever happens now, it is not there. */
  open(client: number, number: number, below: (limit: number) => number): Transfer {
    const source = below(accounts);
    const target = (source + 1 + below(accounts - 1)) % accounts;
    const amount = 1 + below(100);
    const rest = { id: `${client}-${number}`, client, number, source, target, amount };
    const transfer = { ...rest, checksum: checksumOf(rest) };
    this.#fates.set(rest.id, { transfer, fate: 'gone' });
    return transfer;
  }

  /** A COMMIT may have been sent: the outcome is unknown until there is an answer. */
  sent({ id }: Transfer): void {
    this.#note(id, 'either');
  }

  /** The server has said that it is committed. */
  kept({ id }: Transfer): void {
    this.#note(id, 'kept');
  }

  /** The server has said that it is not. */
  failed({ id }: Transfer): void {
    this.#note(id, 'gone');
  }

  #note(id: string, fate: Fate): void {
    const entry = this.#fates.get(id);
    if (entry !== undefined) entry.fate = fate;
  }

  get counts(): Readonly<Record<Fate, number>> {
    const counts = { gone: 0, either: 0, kept: 0 };
    for (const { fate } of this.#fates.values()) counts[fate]++;
    return counts;
  }

  /** Where the database and the book disagree, in words. */
  async audit(admin: pg.Client): Promise<string[]> {
    const { rows } = await admin.query<Transfer>('select * from public.ledger');
    const present = new Set(rows.map(({ id }) => id));
    const wrong: string[] = [];
    for (const [id, { fate }] of this.#fates) {
      if (fate === 'kept' && !present.has(id)) wrong.push(`transfer ${id} was acknowledged, and is lost`);
      if (fate === 'gone' && present.has(id)) wrong.push(`transfer ${id} was not committed, and is there`);
    }
    for (const row of rows) {
      const { transfer } = this.#fates.get(row.id) ?? {};
      if (transfer === undefined) wrong.push(`transfer ${row.id} was never made`);
      else if (row.checksum !== checksumOf(row) || row.checksum !== transfer.checksum)
        wrong.push(`transfer ${row.id} is not what it was: ${JSON.stringify(row)}`);
    }
    return [...wrong, ...(await checkBalances(admin, rows))];
  }
}

/** Each balance must be what the ledger makes it, so that no transfer was done by half or twice. */
async function checkBalances(admin: pg.Client, ledger: readonly Transfer[]): Promise<string[]> {
  const expected = new Array<number>(accounts).fill(opening);
  for (const { source, target, amount } of ledger) {
    expected[source] = (expected[source] as number) - amount;
    expected[target] = (expected[target] as number) + amount;
  }
  const { rows } = await admin.query<{ balance: string }>('select balance from public.account order by id');
  const actual = rows.map(({ balance }) => Number(balance));
  const wrong = actual.flatMap((balance, id) =>
    balance === expected[id] ? [] : [`account ${id} has ${balance}, and ${expected[id]} by the ledger`],
  );
  const sum = actual.reduce((total, balance) => total + balance, 0);
  if (sum !== accounts * opening)
    wrong.push(`all accounts together have ${sum}, and not ${accounts * opening}`);
  return wrong;
}

function checksumOf(transfer: Omit<Transfer, 'checksum'>): string {
  const { id, client, number, source, target, amount } = transfer;
  return createHash('md5').update([id, client, number, source, target, amount].join('|')).digest('hex');
}

/** The values of a ledger's line, in the order of its columns. */
export function lineOf(transfer: Transfer): string[] {
  const { id, client, number, source, target, amount, checksum } = transfer;
  return [id, String(client), String(number), String(source), String(target), String(amount), checksum];
}

/** The two updates, always in the order of the accounts, so that transfers do not wait for each other in a circle. */
export function updatesOf({ source, target, amount }: Transfer): [string, string] {
  const update = (id: number): string =>
    `update public.account set balance = balance ${id === source ? '-' : '+'} ${amount} where id = ${id}`;
  return [update(Math.min(source, target)), update(Math.max(source, target))];
}

export function insertOf(transfer: Transfer): string {
  const [id, client, number, source, target, amount, checksum] = lineOf(transfer);
  return `insert into public.ledger values ('${id}', ${client}, ${number}, ${source}, ${target}, ${amount}, '${checksum}')`;
}
