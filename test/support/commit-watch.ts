// The moment at which a client of node-postgres sends COMMIT, for tests of what follows when its answer does not come.
import pg from 'pg';
import { vi } from 'vitest';

/** Calls `act` once, as soon as any client has written its next COMMIT to its socket. */
export function whenCommitIsSent(act: () => void): void {
  const send = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ): undefined {
    const result = Reflect.apply(send, this, args);
    if (/^commit/i.test(textOf(args[0]))) {
      spy.mockRestore();
      act();
    }
    return result as undefined;
  });
}

function textOf(query: unknown): string {
  return typeof query === 'string' ? query : String((query as { text?: unknown } | undefined)?.text);
}
