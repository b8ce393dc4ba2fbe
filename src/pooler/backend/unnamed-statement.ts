/** The unnamed statement of a client, as it was sent: a server that does not have it can be given it. */

/** What a statement does when it is executed, as far as its text tells. */
export interface StatementEffects {
  /** To settings; or the name that it gives up. */
  readonly change: object | undefined;
  /** It may throw prepared statements away. */
  readonly mayDiscard: boolean;
  /** It may change what names and types mean. */
  readonly mayChangeSchema: boolean;
}

export const noEffects: StatementEffects = { change: undefined, mayDiscard: false, mayChangeSchema: false };

export class UnnamedStatement {
  /** A Parse of it, complete; undefined where it was too long to be kept. */
  readonly parse: Buffer | undefined;
  readonly effects: StatementEffects;

  constructor(parse?: Buffer, effects: StatementEffects = noEffects) {
    this.parse = parse;
    this.effects = effects;
  }
}

/** What a Close is about that ends it. */
export const unnamedStatement = new UnnamedStatement();

/** What an answer up to ReadyForQuery is about that leaves it as it is: every Query ends it, and a FunctionCall does not. */
export const keepsUnnamed: object = {};
