/** Effects of a statement on its session when it is run, as far as its text tells. */
import type { PinReason } from '../../sql/pin-reasons.js';

/** Leftovers that neither the text nor the server's answers rule out. */
export const Unclear = {
  nothing: 0,
  /** Things that the server can be asked about. */
  objects: 1,
  /** Settings as well, some of which no server tells. */
  settings: 2,
} as const;
export type Unclear = (typeof Unclear)[keyof typeof Unclear];

export interface StatementEffects {
  /** Change that the tag of the statement confirms: of settings, or the name of a statement that is deallocated. */
  readonly change: object | undefined;
  /** Prepared statements or settings may be discarded. */
  readonly mayDiscard: boolean;
  /** Names and types may mean something else afterwards. */
  readonly mayChangeSchema: boolean;
  /** The server may read later texts differently: in another encoding, or with other string rules. */
  readonly mayChangeReading: boolean;
  readonly unclear: Unclear;
  /** The client must keep its server afterwards, and no question to the server would show that. */
  readonly pin: PinReason | undefined;
}

/** Effects of a plain statement. */
export const noEffects: StatementEffects = Object.freeze({
  change: undefined,
  mayDiscard: false,
  mayChangeSchema: false,
  mayChangeReading: false,
  unclear: Unclear.nothing,
  pin: undefined,
});

/** Effects of a statement that is harmless but not plain, for example with comments. */
export const harmlessEffects: StatementEffects = Object.freeze({ ...noEffects });

/** Effects of a text that is too long to be read. */
export const unreadEffects: StatementEffects = Object.freeze({
  ...noEffects,
  mayChangeSchema: true,
  mayChangeReading: true,
  unclear: Unclear.settings,
});
