/**
 * The pool's own listeners on an open client. They outlive `removeAllListeners()`, which programs call before they release a
 * client: an idle client without a listener for its `error` event would end the process.
 */
import type { PgClient } from './client.js';
import { setOwnMethod } from './own-method.js';

type Listener = (...args: never[]) => void;

/** Call once for each client. */
export function listenForLife(client: PgClient, listeners: Readonly<Record<string, Listener>>): void {
  const listen = (): void => {
    for (const [event, listener] of Object.entries(listeners))
      if (!client.listenerCount?.(event, listener)) client.on(event, listener);
  };
  listen();
  const { removeAllListeners } = client;
  if (removeAllListeners === undefined) return;
  setOwnMethod(client, 'removeAllListeners', function (this: PgClient, ...events: string[]): unknown {
    removeAllListeners.apply(this, events);
    listen();
    return this;
  });
}
