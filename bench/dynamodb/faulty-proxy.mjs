// @ts-check
// Stands between programs and DynamoDB Local, and makes of it what DynamoDB can be: answers get lost after they took
// effect, transactions conflict, requests are throttled.
import { once } from 'node:events';
import { createServer, request } from 'node:http';

/**
 * @typedef {object} Faults the part of calls that go wrong, each from 0 to 1
 * @property {number} lostAnswers
 * @property {number} conflicts
 * @property {number} throttles
 */

/**
 * @param {string} target
 * @returns {Promise<{ url: string, setFaults: (faults: Faults) => void, counts: { calls: number, lost: number, conflicts: number, throttles: number }, stop: () => Promise<void> }>}
 */
export async function startFaultyProxy(target) {
  const { hostname, port } = new URL(target);
  let faults = { lostAnswers: 0, conflicts: 0, throttles: 0 };
  const counts = { calls: 0, lost: 0, conflicts: 0, throttles: 0 };
  const server = createServer((asked, answer) => {
    counts.calls++;
    const operation = String(asked.headers['x-amz-target']).split('.').at(-1);
    if (operation === 'TransactWriteItems' && Math.random() < faults.conflicts) {
      counts.conflicts++;
      asked.resume();
      refuse(answer, 'TransactionCanceledException', {
        Message:
          'Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict, None]',
        CancellationReasons: [{ Code: 'TransactionConflict', Message: 'conflict' }, { Code: 'None' }],
      });
      return;
    }
    if (Math.random() < faults.throttles) {
      counts.throttles++;
      asked.resume();
      refuse(answer, 'ProvisionedThroughputExceededException', { message: 'throttled' });
      return;
    }
    const isLost = Math.random() < faults.lostAnswers;
    const forwarded = request(
      { hostname, port, method: asked.method, path: asked.url, headers: asked.headers },
      (given) => {
        if (isLost) {
          counts.lost++;
          given.resume();
          given.on('end', () => asked.socket.destroy());
          return;
        }
        answer.writeHead(given.statusCode ?? 500, given.headers);
        given.pipe(answer);
      },
    );
    forwarded.on('error', () => asked.socket.destroy());
    asked.pipe(forwarded);
  });
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
      server.close();
      await once(server, 'close');
    },
  };
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
