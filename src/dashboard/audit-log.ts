/** Actions of users on the page, also in vain. Told to the log as it happens; the last are kept to be shown. */
import type { AuditRecord } from './snapshot.js';

const most = 200;
const longestText = 300;

export class AuditLog {
  readonly #records: AuditRecord[] = [];
  readonly #tell: (record: AuditRecord) => void;

  constructor(tell: (record: AuditRecord) => void) {
    this.#tell = tell;
  }

  note(record: AuditRecord): void {
    const short = { ...record, detail: record.detail.slice(0, longestText) };
    this.#records.push(short);
    if (this.#records.length > most) this.#records.shift();
    this.#tell(short);
  }

  /** The latest first. */
  get latest(): readonly AuditRecord[] {
    return this.#records.toReversed();
  }
}
