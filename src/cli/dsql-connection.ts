/** The pool of a command that works on a cluster: by flags, then by the environment. */
import { readFileSync } from 'node:fs';
import { DsqlPool } from '../dsql/dsql-pool.js';
import { PoolOptionsError } from '../kernel/errors.js';
import { Pool } from '../pg/pool.js';
import { wholeNumber } from './options.js';
import { UsageError } from './usage-error.js';

export const connectionKinds = {
  host: 'text',
  port: 'text',
  region: 'text',
  user: 'text',
  database: 'text',
  ca: 'text',
  url: 'text',
} as const;

export const connectionHelp = `  --host NAME       the cluster's endpoint (CLUSTER_ENDPOINT, or PGHOST)
  --port N          (PGPORT, or 5432)
  --region REGION   the cluster's Region (the one in its endpoint, REGION, or AWS_REGION)
  --user NAME       (admin)
  --database NAME   (postgres)
  --ca FILE         the authority that has signed the server's certificate (PGSSLROOTCERT, or those that Node knows)
  --url URL         a plain PostgreSQL, in place of all of the above`;

type ConnectionValues = { readonly [K in keyof typeof connectionKinds]?: string };
type Environment = Readonly<Record<string, string | undefined>>;

const connections = 2;

export function openPool(values: ConnectionValues, environment: Environment): Pool {
  const { url, ...others } = values;
  if (url !== undefined) {
    const given = Object.keys(others).find((name) => others[name as keyof typeof others] !== undefined);
    if (given !== undefined) throw new UsageError(`--url and --${given} can't be given together`);
    return new Pool({ connectionString: url, max: connections });
  }
  try {
    return openDsqlPool(others, environment);
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    const lines = error.problems.map(({ path, message }) => `--${path} ${message}`);
    throw new UsageError(lines.join('\nheadgate: '));
  }
}

function openDsqlPool(values: Omit<ConnectionValues, 'url'>, environment: Environment): DsqlPool {
  const host = values.host ?? environment['CLUSTER_ENDPOINT'] ?? environment['PGHOST'];
  if (host === undefined)
    throw new UsageError(
      'There is no cluster to work on: give --host, or set CLUSTER_ENDPOINT. For a plain PostgreSQL, give --url.',
    );
  const port = values.port ?? environment['PGPORT'];
  const ca = values.ca ?? rootCertificate(environment);
  const { AWS_REGION, AWS_DEFAULT_REGION } = environment;
  return new DsqlPool({
    host,
    region: values.region ?? environment['REGION'],
    ...(port === undefined ? {} : { port: wholeNumber('port', port, 65_535) }),
    ...(values.user === undefined ? {} : { user: values.user }),
    ...(values.database === undefined ? {} : { database: values.database }),
    ...(ca === undefined ? {} : { ssl: { ca: readCa(ca) } }),
    max: connections,
    warmup: false,
    keeper: false,
    // The limits of a fleet are not for a command that opens two connections.
    env: { AWS_REGION, AWS_DEFAULT_REGION },
  });
}

/** libpq's `system` stands for the authorities that the machine knows. */
function rootCertificate({ PGSSLROOTCERT }: Environment): string | undefined {
  return PGSSLROOTCERT === 'system' || PGSSLROOTCERT === '' ? undefined : PGSSLROOTCERT;
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--ca: can't read ${file}: ${(error as Error).message}`);
  }
}
