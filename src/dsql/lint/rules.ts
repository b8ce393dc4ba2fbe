/** The table of rules. Ids are stable: suppressions and reports name them. */
import { featureDays } from '../../dialect/profile.js';
import { changeRules } from './definitions/change-definitions.js';
import { statementRules } from './definitions/statement-definitions.js';
import { tableRules } from './definitions/table-definitions.js';
import { documentationPages, type FixLevel, type RuleDefinition, type Severity } from './rule-definition.js';

export const rules = { ...statementRules, ...tableRules, ...changeRules } as const;

export type RuleId = keyof typeof rules;

export interface LintRule {
  readonly id: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly advice: string;
  /** The mildest level that fixes some case of it; undefined: by hand. */
  readonly fix: FixLevel | undefined;
  /** The day of the profile from which the rule no longer applies. */
  readonly until: string | undefined;
  readonly url: string;
}

/** Every rule, in the order of the documentation. */
export const lintRules: readonly LintRule[] = (Object.entries(rules) as [RuleId, RuleDefinition][]).map(
  ([id, { severity, reason, advice, fix, until, page }]) => ({
    id,
    severity,
    reason,
    advice,
    fix,
    until: until === undefined ? undefined : featureDays[until],
    url: documentationPages[page],
  }),
);

export function isRuleId(text: string): text is RuleId {
  return Object.hasOwn(rules, text);
}
