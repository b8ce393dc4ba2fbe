/** Applies fixes in rounds, and keeps track of what they leave. */
import { Examiner } from '../../dialect/examiner.js';
import { type FixReport, type LintReport, reportFindings, type SeenFindings } from './findings.js';
import { Inspector } from './inspect.js';
import { leaveOut } from './leave-out.js';
import { type Edit, MappedText } from './mapped-text.js';
import type { Fix, RawFinding } from './rule.js';
import type { FixLevel } from './rule-definition.js';
import { rules } from './rules.js';

const levels: readonly FixLevel[] = ['safe', 'unsafe', 'convert'];
/** A statement has few problems behind each other; a fix that brings its own problem back must not go on for ever. */
const mostRounds = 200;

interface Outcome {
  readonly text: string;
  readonly seen: SeenFindings;
  readonly left: ReadonlySet<string>;
  readonly leftOut: ReadonlySet<string>;
}

/** One profile's rules, for many texts. */
export class Linter {
  readonly profile: string;
  readonly #inspector: Inspector;

  private constructor(examiner: Examiner) {
    this.profile = examiner.profile.day;
    this.#inspector = new Inspector(examiner);
  }

  static async load(profile?: string): Promise<Linter> {
    return new Linter(await Examiner.load(profile));
  }

  async lint(text: string): Promise<LintReport> {
    const { seen } = await this.#run(text, 'unsafe');
    return { profile: this.profile, findings: reportFindings(text, seen, () => 'open') };
  }

  async fix(text: string, level: FixLevel): Promise<FixReport> {
    const { seen } = await this.#run(text, 'unsafe');
    const outcome = await this.#run(text, level);
    const all = new Map([...seen, ...outcome.seen]);
    const findings = reportFindings(text, all, (key) => {
      if (outcome.leftOut.has(key)) return 'left out';
      return outcome.left.has(key) || !outcome.seen.has(key) ? 'open' : 'fixed';
    });
    return { profile: this.profile, findings, text: outcome.text, isChanged: outcome.text !== text };
  }

  /** Applies fixes up to a level until there is none left. A fix shows problems that it hid. */
  async #run(text: string, level: FixLevel): Promise<Outcome> {
    const mapped = new MappedText(text);
    const seen = new Map<string, { finding: RawFinding; start: number; end: number }>();
    const leftOut = new Set<string>();
    let left = new Set<string>();
    for (let round = 0; round < mostRounds; round++) {
      const { findings, pieces } = await this.#inspector.inspect(mapped.text);
      const keyOf = ({ rule, start }: RawFinding) => `${rule} ${mapped.originOf(start)}`;
      left = new Set(findings.map(keyOf));
      for (const finding of findings) {
        const key = keyOf(finding);
        // Warnings about what a fix wrote are of no use.
        if (seen.has(key) || (round > 0 && rules[finding.rule].severity === 'warning')) continue;
        seen.set(key, { finding, start: mapped.originOf(finding.start), end: mapped.originOf(finding.end) });
      }
      const edits = choose(findings, level);
      if (edits.length === 0 && level === 'convert')
        for (const { finding, edits: more } of leaveOut(mapped.text, findings, pieces)) {
          leftOut.add(keyOf(finding));
          edits.push(...more);
        }
      if (edits.length === 0) break;
      mapped.apply(edits.sort((a, b) => a.start - b.start));
    }
    return { text: mapped.text, seen, left, leftOut };
  }
}

/** Fixes of one round, whole ones that do not touch each other. Those of convert wait for the others. */
function choose(findings: readonly RawFinding[], level: FixLevel): Edit[] {
  const fixes = findings.map(({ fix }) => fix).filter((fix) => fix !== undefined);
  const isAllowed = (fix: Fix) => levels.indexOf(fix.level) <= levels.indexOf(level);
  const isEarly = (fix: Fix) => fix.level !== 'convert';
  const early = disjoint(fixes.filter((fix) => isAllowed(fix) && isEarly(fix)));
  return early.length > 0 ? early : disjoint(fixes.filter(isAllowed));
}

function disjoint(fixes: readonly Fix[]): Edit[] {
  const chosen: Edit[] = [];
  for (const { edits } of fixes) {
    if (!edits.every((edit) => isFree(edit, chosen))) continue;
    for (const edit of edits) chosen.splice(placeFor(edit, chosen), 0, edit);
  }
  return chosen;
}

/** Where an edit belongs in a list by start. */
function placeFor({ start }: Edit, sorted: readonly Edit[]): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as Edit).start <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Edits that touch each other depend on their order, so one of them waits for the next round; insertions follow each other. */
function isFree(edit: Edit, sorted: readonly Edit[]): boolean {
  const place = placeFor(edit, sorted);
  const [before, after] = [sorted[place - 1], sorted[place]];
  const isBehind =
    before === undefined || before.end < edit.start || (isInsertion(before) && before.start === edit.end);
  return isBehind && (after === undefined || edit.end < after.start);
}

function isInsertion({ start, end }: Edit): boolean {
  return start === end;
}
