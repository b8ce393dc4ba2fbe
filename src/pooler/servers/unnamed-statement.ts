/** The unnamed statement of a client, as it was sent: a server that does not have it can be given it. */

import { noEffects, type StatementEffects } from '../settings/statement-effects.js';
import type { QueryCount } from './query-stats.js';
import type { StatementShape } from './statement-shape.js';

export class UnnamedStatement {
  /** A Parse of it, complete; undefined where it was too long to be kept. */
  readonly parse: Buffer | undefined;
  readonly effects: StatementEffects;
  /** The client has asked for a description: should it fail to be parsed, the parameters are described all the same. */
  readonly told: StatementShape | undefined;
  /** A server was asked to describe it, for one of the clients that have sent it; and what was said last, to any of them. */
  wasDescribed = false;
  lastShape: StatementShape | undefined;
  /** Its entry in the statistics, where there are any. */
  count: QueryCount | undefined;

  constructor(parse?: Buffer, effects: StatementEffects = noEffects, told?: StatementShape) {
    this.parse = parse;
    this.effects = effects;
    this.told = told;
    this.lastShape = undefined;
    this.count = undefined;
  }
}

/** What a Close is about that ends it. */
export const unnamedStatement = new UnnamedStatement();

/** What an answer up to ReadyForQuery is about that leaves it as it is: every Query ends it, and a FunctionCall does not. */
export const keepsUnnamed: object = {};
