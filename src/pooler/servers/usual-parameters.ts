/** Parameters that servers have reported most recently for a new session. */
import { ReportedSettings } from './reported-settings.js';

export class UsualParameters {
  #all: ReadonlyMap<string, string> | undefined;

  /** Undefined until a session was opened. The same object while the parameters are unchanged. */
  get all(): ReadonlyMap<string, string> | undefined {
    return this.#all;
  }

  /** `mostBytes`: limit of what is kept. */
  note(reported: Iterable<readonly [string, string]>, mostBytes: number): void {
    const parameters = new ReportedSettings(mostBytes, this.#all);
    let isNew = this.#all === undefined;
    for (const [name, value] of reported) {
      const isOther = parameters.get(name) !== value;
      // Servers may report different settings.
      if (isOther && parameters.report(name, value)) isNew = true;
    }
    if (isNew) this.#all = parameters.all;
  }
}
