// A cluster of Aurora DSQL, or a stand-in in a process of its own, so that it does not share a core with the load.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('./dist/cli/main.js', import.meta.resolve('headgate/package.json')));

/** Options of a `DsqlPool`, and what can be done with a stand-in. */
export async function connectToDsql() {
  const { CLUSTER_ENDPOINT, REGION } = process.env;
  if (CLUSTER_ENDPOINT) {
    const setFaults = async (percent) => {
      if (percent > 0) throw new Error('--faults needs the stand-in: unset CLUSTER_ENDPOINT');
    };
    return { connection: { host: CLUSTER_ENDPOINT, region: REGION }, setFaults, stop: async () => {} };
  }
  const child = spawn(
    process.execPath,
    [command, 'dsql-local', '--port', '0', '--control-port', '0', '--json'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ended = once(child, 'exit');
  const { host, port, region, accessKeyId, secretAccessKey, caFile, control } = await firstLine(child);
  return {
    connection: {
      ...{ host, port, region, credentials: { accessKeyId, secretAccessKey } },
      ssl: { ca: readFileSync(caFile, 'utf8') },
    },
    async setFaults(percent) {
      const share = percent / 200;
      const faults = percent > 0 ? { unavailableBeforeCommit: share, unavailableAfterCommit: share } : {};
      const headers = { authorization: `Bearer ${control.token}` };
      const answer = await fetch(`${control.url}/faults`, {
        method: 'PUT',
        headers,
        body: JSON.stringify(faults),
      });
      if (!answer.ok) throw new Error(`the stand-in answered ${answer.status}: ${await answer.text()}`);
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function firstLine(child) {
  let said = '';
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.includes('\n')) break;
  }
  if (!said.includes('\n')) throw new Error('the stand-in did not start');
  return JSON.parse(said.slice(0, said.indexOf('\n')));
}
