/** Types of the rules: a statement's parse node and its context in, a refusal or nothing out. */
import type { Refusal, StatementKind } from './judgement.js';
import type { Profile } from './profile.js';
import type { StatementText } from './statement-text.js';

/** One statement under judgement. Rules add catalog checks and edits of the text. */
export interface RuleContext {
  readonly profile: Profile;
  /** ASYNC was taken out of the statement. */
  readonly isAsync: boolean;
  readonly text: StatementText;
  readonly checks: string[];
  /** Receives every refusal of a list, with the node it is about; without it, the first one ends the judgement. */
  readonly collect?: ((refusal: Refusal, about: unknown) => void) | undefined;
  /** The first refusal of another text that the statement holds, such as a function's body. */
  judgeInner(sql: string): Refusal | undefined;
}

export type Rule<B> = (body: B, context: RuleContext) => Refusal | undefined;

export interface StatementRule<B> {
  readonly kind: StatementKind;
  /** Accepts everything when it is not given. */
  readonly judge?: Rule<B>;
}

/** The first refusal of a list of things that one rule judges. A context that collects is given all, and none is left. */
export function firstRefusal<T>(
  things: readonly T[],
  { collect }: Pick<RuleContext, 'collect'>,
  judge: (thing: T) => Refusal | undefined,
): Refusal | undefined {
  for (const thing of things) {
    const refusal = judge(thing);
    if (refusal === undefined) continue;
    if (collect === undefined) return refusal;
    collect(refusal, thing);
  }
  return undefined;
}
