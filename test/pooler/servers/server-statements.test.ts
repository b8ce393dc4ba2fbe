import { expect, test } from 'vitest';
import { PreparedStatement } from '../../../src/pooler/servers/prepared-statement.js';
import { Asked, ReplyQueue } from '../../../src/pooler/servers/reply-queue.js';
import { ServerCopy, ServerStatements } from '../../../src/pooler/servers/server-statements.js';

const most = 4;

/** A server connection as its owner handles it: room is made before the Parse is owed. */
class Connection {
  readonly statements = new ServerStatements(most, 1_000_000);
  readonly replies = new ReplyQueue();
  closed = 0;
  #last = 0;

  prepare(): void {
    const name = Buffer.from(`s${++this.#last}`);
    const copy = new ServerCopy(name, this.#last, this.replies.batchesSent);
    this.statements.add(new PreparedStatement(Buffer.alloc(20), undefined, ''), copy);
    for (const _ of this.statements.evict(this.replies)) {
      this.closed++;
      this.replies.push(Asked.ownClose);
    }
    this.replies.push(Asked.parse);
  }
}

test('ServerStatements closes all superfluous statements at once when the server has answered everything', () => {
  const connection = new Connection();
  const { statements, replies } = connection;
  while (!statements.isCrowded) connection.prepare();
  expect(connection.closed).toBe(0);
  const { size } = statements;
  replies.clear();

  connection.prepare();
  expect(statements.size).toBe(most);
  expect(connection.closed).toBe(size + 1 - most);
  expect(statements.isCrowded).toBe(false);
});

test('ServerStatements waits for answers once for many statements of a batch without end, not once for each', () => {
  const connection = new Connection();
  let waits = 0;
  for (let n = 0; n < 1_000; n++) {
    if (connection.statements.isCrowded && connection.replies.size > 0) {
      waits++;
      connection.replies.clear();
    }
    connection.prepare();
  }
  expect(waits).toBeLessThan(1_000 / most);
  expect(connection.closed).toBeGreaterThan(900);
});

test('ServerStatements closes no statement whose preparation is not answered, and never the one used last', () => {
  const connection = new Connection();
  for (let n = 0; n < 2 * most; n++) connection.prepare();
  expect(connection.closed).toBe(0);
  expect(connection.statements.size).toBe(2 * most);
});

test('ServerStatements looks for statements to close once a batch, not once for each statement of a batch without end', () => {
  const statements = new ServerStatements(100, 1_000_000);
  const replies = new ReplyQueue();
  let looks = 0;
  for (let n = 0; n < 200; n++) {
    const copy = new ServerCopy(Buffer.from(`s${n}`), n, replies.batchesSent);
    const { batch } = copy;
    Object.defineProperty(copy, 'batch', { get: () => ++looks && batch });
    statements.add(new PreparedStatement(Buffer.alloc(20), undefined, ''), copy);
    expect(statements.evict(replies)).toEqual([]);
    replies.push(Asked.parse);
  }
  expect(looks).toBeLessThan(200);
  replies.push(Asked.sync);
  while (replies.size > 0) replies.shift();
  expect(statements.evict(replies)).toHaveLength(100);
});

test('ServerStatements closes the statements used longest ago when all of them take too many bytes', () => {
  const statements = new ServerStatements(1_000, 100_000);
  const replies = new ReplyQueue();
  const texts = Array.from({ length: 50 }, () => new PreparedStatement(Buffer.alloc(10_000), undefined, ''));
  const closed = texts.map((text, n) => {
    statements.add(text, new ServerCopy(Buffer.from(`s${n}`), n, replies.batchesSent));
    return statements.evict(replies).map(({ name }) => name.toString());
  });
  expect(statements.size).toBeGreaterThan(5);
  expect(statements.size).toBeLessThanOrEqual(10);
  expect(closed.flat()).toEqual(Array.from({ length: 50 - statements.size }, (_, n) => `s${n}`));
});
