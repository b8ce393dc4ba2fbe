/** Types of the rules: a statement's parse node and its context in, a refusal or nothing out. */
import type { Refusal, StatementKind } from './judgement.js';
import type { Profile } from './profile.js';
import type { StatementText } from './statement-text.js';

/** One statement while it is judged. Rules add catalog checks and edits of the text. */
export interface RuleContext {
  readonly profile: Profile;
  /** ASYNC was taken out of the statement. */
  readonly isAsync: boolean;
  readonly text: StatementText;
  readonly checks: string[];
  /** The first refusal of another text that the statement holds, such as a function's body. */
  judgeInner(sql: string): Refusal | undefined;
}

export type Rule<B> = (body: B, context: RuleContext) => Refusal | undefined;

export interface StatementRule<B> {
  readonly kind: StatementKind;
  /** Accepts everything when it is not given. */
  readonly judge?: Rule<B>;
}

/** The first refusal of a list of things that one rule judges. */
export function firstRefusal<T>(
  things: readonly T[],
  judge: (thing: T) => Refusal | undefined,
): Refusal | undefined {
  for (const thing of things) {
    const refusal = judge(thing);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
