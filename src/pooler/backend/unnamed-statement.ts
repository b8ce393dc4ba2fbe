/** The unnamed statement of a client, as it was sent: a server that does not have it can be given it. */

export class UnnamedStatement {
  /** A Parse of it, complete; undefined where it was too long to be kept. */
  readonly parse: Buffer | undefined;
  /** What it does to settings. */
  readonly change: object | undefined;
  /** It may throw prepared statements away. */
  readonly mayDiscard: boolean;

  constructor(parse?: Buffer, change?: object, mayDiscard = false) {
    this.parse = parse;
    this.change = change;
    this.mayDiscard = mayDiscard;
  }
}

/** What a Close is about that ends it. */
export const unnamedStatement = new UnnamedStatement();

/** What an answer up to ReadyForQuery is about that leaves it as it is: every Query ends it, and a FunctionCall does not. */
export const keepsUnnamed: object = {};
