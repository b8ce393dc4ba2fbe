/** What becomes of clients whose statements came in the same round of the event loop. */
import { expect, test } from 'vitest';
import type { PooledConnection } from '../../../src/core/pooled-connection.js';
import type { Backend } from '../../../src/pooler/servers/backend.js';
import { type GatheredClient, Gathering } from '../../../src/pooler/servers/gathering.js';

class Client implements GatheredClient {
  isGathered = true;
  readonly #name: string;
  readonly #events: string[];
  readonly #led: (client: Client) => void;

  constructor(name: string, events: string[], led: (client: Client) => void = () => {}) {
    this.#name = name;
    this.#events = events;
    this.#led = led;
  }

  lead(): void {
    this.isGathered = false;
    this.#events.push(`${this.#name} leads`);
    this.#led(this);
  }

  queueUp(): void {
    this.isGathered = false;
    this.#events.push(`${this.#name} queues up`);
  }

  follow(): boolean {
    this.isGathered = false;
    this.#events.push(`${this.#name} follows`);
    return true;
  }
}

/** As many connections as can be taken. */
function gathering(connections: number): Gathering {
  let left = connections;
  return new Gathering({
    tryTake: () => (left-- > 0 ? ({} as PooledConnection<Backend>) : undefined),
  });
}

function roundIsOver(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

test('nothing is sent before the round is over, and then one client leads the others', async () => {
  const events: string[] = [];
  const gathered = gathering(1);
  const lead = (): void => {
    while (gathered.first !== undefined) gathered.first.follow({} as Backend);
  };
  for (const name of ['a', 'b', 'c']) gathered.add(new Client(name, events, lead));
  expect(events).toEqual([]);
  await roundIsOver();
  expect(events).toEqual(['a leads', 'b follows', 'c follows']);
  expect(gathered.size).toBe(0);
});

test('clients queue up in order where there is no connection', async () => {
  const events: string[] = [];
  const gathered = gathering(1);
  for (const name of ['a', 'b', 'c']) gathered.add(new Client(name, events));
  await roundIsOver();
  expect(events).toEqual(['a leads', 'b queues up', 'c queues up']);
});

test('a client that does not wait any more takes no connection', async () => {
  const events: string[] = [];
  const gathered = gathering(1);
  const left = new Client('a', events);
  gathered.add(left);
  gathered.add(new Client('b', events));
  left.isGathered = false;
  await roundIsOver();
  expect(events).toEqual(['b leads']);
});

test('a client that comes while others are sent is served as well', async () => {
  const events: string[] = [];
  const gathered = gathering(2);
  gathered.add(new Client('a', events, () => gathered.add(new Client('b', events))));
  await roundIsOver();
  expect(events).toEqual(['a leads', 'b leads']);
});
