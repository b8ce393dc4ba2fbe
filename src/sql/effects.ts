/** The effects that a text may leave in a session, as far as the text shows them. */
export interface TextEffects {
  /**
   * - `nothing`: every statement is known to leave nothing beyond its transaction.
   * - `settings`: besides those, only SET, RESET, DISCARD and DEALLOCATE.
   * - `unclear`: all others.
   */
  readonly leaves: 'nothing' | 'settings' | 'unclear';
  /**
   * Something may be left that no catalog shows, so that the server can't be asked for it: a loaded library, a seed, a connection
   * of dblink. False for DO, CALL and EXECUTE, of which it is not known.
   */
  readonly mayLeaveHidden: boolean;
  /** False only if no statement can change the meaning of names and types. */
  readonly mayChangeSchema: boolean;
  /** Settings may be changed in a way that neither the text nor the server's tags show: by SQL that is hidden in a string. */
  readonly mayHideSettings: boolean;
  /** The server may read later texts in another way: in another encoding, or with backslashes that mean something else. */
  readonly mayChangeReading: boolean;
  /** A statement takes settings back, or prepared statements away, or may do so. */
  readonly mayDiscard: boolean;
  /** A statement begins, ends or marks a transaction, or may do so: CALL and DO may. */
  readonly touchesTransaction: boolean;
  /** 0 if the text is empty or can't be read. */
  readonly statementCount: number;
}
