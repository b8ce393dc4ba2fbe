// Connections of no kind at all, opened and closed under the eyes of a test.
import type { ConnectionFunctions } from '../../src/runtime/promise-dialer.js';

export interface FakeConnection {
  readonly id: number;
  isOpen: boolean;
}

/** Opens at once, and counts what exists. Override what a test is about. */
export class FakeConnections implements ConnectionFunctions<FakeConnection> {
  opened = 0;
  destroyed = 0;
  open = new Set<FakeConnection>();
  /** The most there ever were at once. */
  peak = 0;

  readonly connect = async (): Promise<FakeConnection> => this.make();

  readonly close = async (connection: FakeConnection): Promise<void> => this.remove(connection);

  readonly destroy = (connection: FakeConnection): void => {
    this.destroyed++;
    this.remove(connection);
  };

  make(): FakeConnection {
    const connection = { id: ++this.opened, isOpen: true };
    this.open.add(connection);
    this.peak = Math.max(this.peak, this.open.size);
    return connection;
  }

  remove(connection: FakeConnection): void {
    connection.isOpen = false;
    this.open.delete(connection);
  }
}

export interface Gate<T> {
  readonly promise: Promise<T>;
  open(value: T): void;
  fail(error: unknown): void;
}

/** A promise that the test settles when it likes. */
export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}
