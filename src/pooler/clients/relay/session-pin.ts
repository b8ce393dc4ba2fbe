/** Why a client keeps its server, and whether the server must be asked or cleaned before another client has it. */
import { isHarmlessFunction } from '../../../sql/harmless-function-calls.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import { type StatementEffects, Unclear } from '../../settings/statement-effects.js';

export class SessionPin {
  #reason: PinReason | undefined;
  #since = 0;
  /** The server can't be asked whether the reason still holds. */
  #isForGood = false;
  /** Leftovers that are possible since the last session check. */
  #unclear: Unclear = Unclear.nothing;
  #mayHideSettings = false;

  get reason(): PinReason | undefined {
    return this.#reason;
  }

  /** In milliseconds since 1970. */
  get since(): number {
    return this.#since;
  }

  /** The server must be asked what is left before another client gets it. */
  get isUnclear(): boolean {
    return this.#unclear !== Unclear.nothing && !this.#isForGood;
  }

  /** The session has, or may have, objects of its own. */
  get isOwn(): boolean {
    return this.#reason !== undefined || this.#unclear !== Unclear.nothing;
  }

  /** Settings that no server lists may have been made, and must be reset before another client gets the server. */
  get mayHideSettings(): boolean {
    return this.#mayHideSettings;
  }

  /** A statement with these effects is run. */
  runs({ unclear, pin, mayDiscard }: StatementEffects): void {
    if (unclear > this.#unclear) this.#unclear = unclear;
    // The statement may remove the reason of the pin.
    if (mayDiscard && this.#reason !== undefined && this.#unclear === Unclear.nothing)
      this.#unclear = Unclear.objects;
    this.#mayHideSettings ||= unclear === Unclear.settings;
    if (pin !== undefined) this.pinForGood(pin);
  }

  /** A function is called by its OID. */
  functionIsCalled(oid: number): void {
    if (isHarmlessFunction(oid)) return;
    this.#unclear = Unclear.settings;
    this.#mayHideSettings = true;
  }

  /** The session check is done: `reason` tells why the client keeps its server. */
  checked(reason: PinReason | undefined): void {
    this.#unclear = Unclear.nothing;
    if (this.#isForGood) return;
    if (reason === undefined) this.#reason = undefined;
    else if (reason !== this.#reason) this.#pin(reason);
  }

  /** Pins the client until DISCARD ALL. */
  pinForGood(reason: PinReason): void {
    if (this.#isForGood) return;
    this.#isForGood = true;
    this.#pin(reason);
  }

  #pin(reason: PinReason): void {
    this.#reason = reason;
    this.#since = Date.now();
  }

  /** The server was released. */
  leftServer(): void {
    this.#mayHideSettings = false;
  }

  /** Everything in the session was discarded. */
  discarded(): void {
    this.#reason = undefined;
    this.#isForGood = this.#mayHideSettings = false;
    this.#unclear = Unclear.nothing;
  }
}
