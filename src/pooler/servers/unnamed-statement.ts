/** A client's unnamed statement, as it was sent, so that another server can be given it. */

import { noEffects, type StatementEffects } from '../settings/statement-effects.js';
import type { QueryCount } from './query-stats.js';
import type { StatementShape } from './statement-shape.js';
import { profileOfParse, type StatementProfile, type StatementTimes } from './statement-times.js';

export class UnnamedStatement {
  /** A complete Parse of it; undefined where the message was too long to be kept. */
  readonly parse: Buffer | undefined;
  readonly effects: StatementEffects;
  /** The client has asked for a description: if the Parse fails, the parameters are described all the same. */
  readonly told: StatementShape | undefined;
  /** A server was asked to describe the statement, for any client that sent it. `lastShape` is the latest answer. */
  wasDescribed = false;
  lastShape: StatementShape | undefined;
  /** Entry in the statistics, where they are kept. */
  count: QueryCount | undefined;

  #profile: StatementProfile | undefined;

  constructor(parse?: Buffer, effects: StatementEffects = noEffects, told?: StatementShape) {
    this.parse = parse;
    this.effects = effects;
    this.told = told;
  }

  /** Usual run time; undefined where the text does not tell. */
  profileIn(times: StatementTimes): StatementProfile | undefined {
    this.#profile ??= profileOfParse(this.parse, times);
    return this.#profile;
  }
}

/** Subject of a Close that ends the unnamed statement. */
export const unnamedStatement = new UnnamedStatement();

/** Subject of an answer up to ReadyForQuery that keeps the unnamed statement: every Query ends it, and a FunctionCall does not. */
export const keepsUnnamed: object = {};
