// The least that a pool needs of a client, without a server behind it, for sentences about the pool alone.
import { EventEmitter } from 'node:events';

type Callback = (error?: Error | null) => void;

export class FakeClient extends EventEmitter {
  _queryable = true;
  _ending = false;

  connect(callback: Callback): void {
    process.nextTick(callback);
  }

  query(_text: unknown, _values: unknown, callback: (error: Error | null, result: unknown) => void): void {
    process.nextTick(callback, null, { rows: [] });
  }

  end(callback?: Callback): void {
    this._ending = true;
    process.nextTick(() => {
      this.emit('end');
      callback?.();
    });
  }

  ref(): void {}

  unref(): void {}
}

/** A kind of client that connects only when the test says so. */
export function clientsThatWait(): {
  Client: new () => FakeClient;
  /** The connects that have been started and not yet answered, oldest first. */
  pending: Callback[];
} {
  const pending: Callback[] = [];
  class WaitingClient extends FakeClient {
    override connect(callback: Callback): void {
      pending.push(callback);
    }
  }
  return { Client: WaitingClient, pending };
}
