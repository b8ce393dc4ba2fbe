// @ts-check
// Stands between programs and DynamoDB Local, and makes of it what DynamoDB can be: answers get lost after they took
// effect, requests arrive twice, transactions conflict, requests are throttled.
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * @typedef {object} Faults the part of calls that go wrong, each from 0 to 1
 * @property {number} lostAnswers
 * @property {number} repeats they arrive a second time, up to two seconds later
 * @property {number} conflicts
 * @property {number} throttles
 */

/** @typedef {{ calls: number, lost: number, repeated: number, conflicts: number, throttles: number }} FaultCounts */

export const noFaults = { lostAnswers: 0, repeats: 0, conflicts: 0, throttles: 0 };

const latestRepeatMs = 2_000;

/**
 * @param {string} target
 * @returns {Promise<{ url: string, setFaults: (faults: Faults) => void, counts: FaultCounts, stop: () => Promise<void> }>}
 */
export async function startFaultyProxy(target) {
  const { hostname, port } = new URL(target);
  const agent = new Agent({ keepAlive: true });
  /** @type {Faults} */
  let faults = noFaults;
  const counts = { calls: 0, lost: 0, repeated: 0, conflicts: 0, throttles: 0 };
  const server = createServer(async (asked, answer) => {
    try {
      await serve(asked, answer);
    } catch {
      asked.socket.destroy();
    }
  });

  /**
   * @param {import('node:http').IncomingMessage} asked
   * @param {import('node:http').ServerResponse} answer
   */
  async function serve(asked, answer) {
    counts.calls++;
    const body = await bodyOf(asked);
    const operation = String(asked.headers['x-amz-target']).split('.').at(-1);
    if (operation === 'TransactWriteItems' && Math.random() < faults.conflicts) {
      counts.conflicts++;
      refuse(answer, 'TransactionCanceledException', {
        Message:
          'Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict, None]',
        CancellationReasons: [{ Code: 'TransactionConflict', Message: 'conflict' }, { Code: 'None' }],
      });
      return;
    }
    if (Math.random() < faults.throttles) {
      counts.throttles++;
      refuse(answer, 'ProvisionedThroughputExceededException', { message: 'throttled' });
      return;
    }
    const given = await forward(asked, body);
    if (Math.random() < faults.repeats) {
      counts.repeated++;
      void repeat(asked, body);
    }
    if (Math.random() < faults.lostAnswers) {
      counts.lost++;
      asked.socket.destroy();
      return;
    }
    answer.writeHead(given.status, given.headers);
    answer.end(given.body);
  }

  /**
   * @param {import('node:http').IncomingMessage} asked
   * @param {Buffer} body
   */
  async function repeat(asked, body) {
    await wait(Math.random() * latestRepeatMs, undefined, { ref: false });
    // Its answer is nobody's.
    await forward(asked, body).catch(() => {});
  }

  /**
   * @param {import('node:http').IncomingMessage} asked
   * @param {Buffer} body
   * @returns {Promise<{ status: number, headers: import('node:http').IncomingHttpHeaders, body: Buffer }>}
   */
  async function forward({ method, url, headers }, body) {
    const sent = request({ agent, hostname, port, method, path: url, headers });
    sent.end(body);
    const [given] = /** @type {[import('node:http').IncomingMessage]} */ (await once(sent, 'response'));
    return { status: given.statusCode ?? 500, headers: given.headers, body: await bodyOf(given) };
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: ownPort } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${ownPort}`,
    setFaults: (wanted) => {
      faults = wanted;
    },
    counts,
    stop: async () => {
      server.closeAllConnections();
      agent.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** @param {import('node:http').IncomingMessage} message */
async function bodyOf(message) {
  const pieces = [];
  for await (const piece of message) pieces.push(piece);
  return Buffer.concat(pieces);
}

/**
 * @param {import('node:http').ServerResponse} answer
 * @param {string} type
 * @param {object} body
 */
function refuse(answer, type, body) {
  answer.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' });
  answer.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, ...body }));
}
