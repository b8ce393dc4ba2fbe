// @ts-check
// Looks at the demonstration's pool from the outside: what the server sees of it, and what it publishes about itself.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks the server again and again how many sessions the pool has. Those of clients who try the pooler are not its own.
 * @param {import('pg').Pool} observer
 * @param {string} applicationName
 */
export function watchSessions(observer, applicationName) {
  const seen = { sessions: 0, highest: 0 };
  let watching = true;
  const look = async () => {
    while (watching) {
      const { rows } = await observer.query(
        `select count(*)::int as sessions from pg_stat_activity
         where backend_type = 'client backend' and application_name = $1`,
        [applicationName],
      );
      seen.sessions = rows[0].sessions;
      seen.highest = Math.max(seen.highest, seen.sessions);
      await sleep(20);
    }
  };
  const done = look().catch(() => {}); // The server has gone.
  return {
    seen,
    async stop() {
      watching = false;
      await done;
    },
  };
}

/** Texts for the messages of each channel that is shown. */
const texts = {
  /** @param {{ connectionId: number, dialMs: number }} message */
  opened: ({ connectionId, dialMs }) => `connection ${connectionId} opened in ${Math.round(dialMs)} ms`,
  /** @param {{ connectionId: number, reason: string }} message */
  discarded: ({ connectionId, reason }) => `connection ${connectionId} discarded: ${reason}`,
  /** @param {{ waitMs: number }} message */
  timeout: ({ waitMs }) => `a caller gave up after ${Math.round(waitMs)} ms`,
  /** @param {{ error: Error }} message */
  'dial-failed': ({ error }) => `opening a connection failed: ${error.message}`,
  /** @param {{ state: string }} message */
  state: ({ state }) => `the pool is ${state}`,
};

/**
 * Notes what a pool of this process publishes about its connections.
 * @param {string} poolName
 * @param {(text: string) => void} note
 * @returns {() => void} ends it
 */
export function listenToPool(poolName, note) {
  const listeners = Object.entries(texts).map(([name, describe]) => {
    /** @param {unknown} message */
    const onMessage = (message) => {
      const isOurs = /** @type {{ poolName: string }} */ (message).poolName === poolName;
      if (isOurs) note(describe(/** @type {never} */ (message)));
    };
    subscribe(`headgate:pool:${name}`, onMessage);
    return () => unsubscribe(`headgate:pool:${name}`, onMessage);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}
