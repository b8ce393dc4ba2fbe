/** The last warnings and errors. A repeated event is counted, so that a flood of one event does not hide the others. */
import type { EventRecord } from './snapshot.js';

const most = 100;
const longestText = 500;

export type EventDetails = Readonly<Record<string, string | number | boolean | undefined>>;

/** Details that differ each time without telling anything new. */
const changing = new Set(['port', 'attempt', 'ms', 'worker']);

export class EventLog {
  /** The one that came last is at the end. */
  readonly #events = new Map<string, EventRecord>();

  note(at: number, level: string, message: string, details: EventDetails = {}): void {
    const told = Object.entries(details).filter(([, value]) => value !== undefined);
    const text = told
      .filter(([name]) => !changing.has(name))
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(' ')
      .slice(0, longestText);
    const key = `${level} ${message} ${text}`;
    const count = (this.#events.get(key)?.count ?? 0) + 1;
    this.#events.delete(key);
    this.#events.set(key, { at, level, message: message.slice(0, longestText), details: text, count });
    if (this.#events.size > most) this.#events.delete(this.#events.keys().next().value as string);
  }

  /** The latest first. */
  latest(count: number): readonly EventRecord[] {
    return [...this.#events.values()].slice(-count).reverse();
  }
}
