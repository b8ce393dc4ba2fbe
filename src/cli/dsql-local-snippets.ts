/** Printed by `headgate dsql-local` when it is ready: its address, and how each kind of client connects. */
import type { DsqlLocal } from '../dsql-local/start-dsql-local.js';

type Ready = Pick<
  DsqlLocal,
  | 'host'
  | 'port'
  | 'endpoint'
  | 'region'
  | 'accessKeyId'
  | 'secretAccessKey'
  | 'caFile'
  | 'arn'
  | 'profile'
  | 'control'
>;

/** One line. Names that are here stay; others may be added. */
export function readyJson(dsql: Ready): string {
  const { host, port, endpoint, region, accessKeyId, secretAccessKey, caFile, arn, profile, control } = dsql;
  const line = { host, port, endpoint, region, accessKeyId, secretAccessKey, caFile, arn, profile, control };
  return `${JSON.stringify({ ...line, host: addressOf(host) })}\n`;
}

/** `program`: how the shell calls `headgate`. */
export function readyText(dsql: Ready, program: string): string {
  const { port, endpoint, region, accessKeyId, secretAccessKey, caFile, profile, control } = dsql;
  const facts = [
    ['endpoint', `${endpoint} (in no DNS; connect to the host below)`],
    ['host', addressOf(dsql.host)],
    ['port', String(port)],
    ['region', region],
    ['user', 'admin'],
    ['database', 'postgres'],
    ['access key', accessKeyId],
    ['secret key', secretAccessKey],
    ['CA file', caFile],
    ...(control === undefined
      ? []
      : [['control', `${control.url} (Authorization: Bearer ${control.token})`]]),
  ];
  const snippets = Object.entries(clientSnippets(dsql, program)).map(
    ([title, code]) => `${title}\n\n${code.replace(/^(?=.)/gm, '  ')}\n`,
  );
  return `Aurora DSQL as of ${profile} is ready.

${facts.map(([name = '', value]) => `  ${name.padEnd(12)}${value}`).join('\n')}

${snippets.join('\n')}
Ctrl-C ends it.
`;
}

/** By the title that each has. All but the first and psql rely on the first. */
function clientSnippets(dsql: Ready, program: string): Readonly<Record<string, string>> {
  const { port, endpoint, region, accessKeyId, secretAccessKey, caFile } = dsql;
  const host = addressOf(dsql.host);
  const keys = `AWS_ACCESS_KEY_ID=${quoted(accessKeyId)} AWS_SECRET_ACCESS_KEY=${quoted(secretAccessKey)}`;
  const ca = quoted(caFile);
  const address = `host=${endpoint} hostaddr=${host} port=${port} user=admin dbname=postgres`;
  return {
    'Environment of the programs below': `unset AWS_PROFILE AWS_SESSION_TOKEN
export ${keys} AWS_REGION=${region}
export NODE_EXTRA_CA_CERTS=${ca} PGSSLROOTCERT=${ca}`,
    psql: `PGPASSWORD="$(${keys} AWS_SESSION_TOKEN= ${program} dsql-local token --host ${endpoint})" \\
  psql "${address} sslmode=verify-full sslrootcert=${connectionValue(caFile)}"`,
    'node-postgres': `import { DsqlSigner } from '@aws-sdk/dsql-signer';
import pg from 'pg';

const signer = new DsqlSigner({ hostname: '${host}', region: '${region}' });
const pool = new pg.Pool({
  host: '${host}',
  port: ${port},
  user: 'admin',
  database: 'postgres',
  password: () => signer.getDbConnectAdminAuthToken(),
  ssl: true,
});`,
    "Headgate's DsqlPool": `import { DsqlPool } from 'headgate/dsql';

const pool = new DsqlPool({ host: '${host}', port: ${port}, region: '${region}', max: 10 });`,
    "AWS's connector": `import { AuroraDSQLPool } from '@aws/aurora-dsql-node-postgres-connector';

const pool = new AuroraDSQLPool({ host: '${host}', port: ${port}, region: '${region}', user: 'admin' });`,
    psycopg: `import boto3, psycopg

endpoint = '${endpoint}'
token = boto3.client('dsql', '${region}').generate_db_connect_admin_auth_token(endpoint, '${region}')
connection = psycopg.connect(host=endpoint, hostaddr='${host}', port=${port}, user='admin', dbname='postgres',
                             password=token, sslmode='verify-full')`,
    JDBC: `jdbc:postgresql://${host}:${port}/postgres?user=admin&sslmode=verify-full&sslrootcert=${encodeURI(caFile)}
password: a token of the AWS SDK for the host ${host}, or the output of
${program} dsql-local token --host ${host}`,
  };
}

/** Where clients of this machine connect to. */
function addressOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** How the shell calls this very program again. */
export function programName(argv: readonly string[], isNpx: boolean): string {
  if (isNpx) return 'npx headgate';
  const [node = 'node', script = ''] = argv;
  return /[/\\]headgate$/.test(script) ? 'headgate' : `${quoted(node)} ${quoted(script)}`;
}

function quoted(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A value of a connection string of libpq, inside of double quotes of the shell. */
function connectionValue(text: string): string {
  if (/^[\w./:@%+,-]+$/.test(text)) return text;
  return `'${text.replace(/['\\]/g, '\\$&').replace(/["$`\\]/g, '\\$&')}'`;
}
