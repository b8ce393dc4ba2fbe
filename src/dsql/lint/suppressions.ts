/** `-- headgate-ignore rule-id, rule-id: reason`, on the line before a finding or before its statement. */
import type { Positions } from './positions.js';
import type { RawFinding } from './rule.js';
import { isRuleId, type RuleId } from './rules.js';

const marker = 'headgate-ignore';
const comment = /^[ \t]*--[ \t]*headgate-ignore\b([^\r\n]*)/gm;

export class Suppressions {
  /** Ids by the line of the comment. */
  readonly #byLine = new Map<number, Set<RuleId>>();
  /** Comments that name no rule. */
  readonly findings: RawFinding[] = [];
  readonly #positions: Positions;

  constructor(text: string, positions: Positions) {
    this.#positions = positions;
    for (const found of text.includes(marker) ? text.matchAll(comment) : []) this.#read(found);
  }

  #read(found: RegExpMatchArray): void {
    const start = (found.index ?? 0) + found[0].indexOf('--');
    const end = (found.index ?? 0) + found[0].length;
    const words =
      (found[1] ?? '')
        .split(':', 1)[0]
        ?.split(/[\s,]+/)
        .filter((word) => word !== '') ?? [];
    const known = words.filter(isRuleId);
    this.#byLine.set(this.#positions.lineOf(start), new Set(known));
    const unknown = words.filter((word) => !isRuleId(word));
    if (unknown.length === 0 && known.length > 0) return;
    const message =
      unknown.length === 0
        ? 'headgate-ignore needs the id of a rule'
        : `there is no rule ${unknown.map((word) => JSON.stringify(word)).join(', ')}`;
    this.findings.push({
      rule: 'unknown-suppression',
      start,
      end,
      statement: start,
      message,
      code: undefined,
      fix: undefined,
    });
  }

  has({ rule, start, statement }: RawFinding): boolean {
    return [start, statement].some((index) => this.#before(this.#positions.lineOf(index), rule));
  }

  /** Several comments may follow each other. */
  #before(line: number, rule: RuleId): boolean {
    for (let above = line - 1; this.#byLine.has(above); above--)
      if (this.#byLine.get(above)?.has(rule)) return true;
    return false;
  }
}
