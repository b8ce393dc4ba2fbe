/** Examines a text for lint: every refusal of each statement, with the part of the parse tree that it is about. */
import type { Node } from 'libpg-query';
import { createDialect } from './dialect.js';
import { judgeExpressions } from './expressions.js';
import { judgeNode, kindOfStatement, lockingOf } from './judge-statement.js';
import type { JudgedStatement, Refusal, StatementKind } from './judgement.js';
import { maskOwnKeywords } from './own-keywords.js';
import { kindOf } from './parse-tree.js';
import { Parser, type SyntaxFault } from './parser.js';
import { createProfile, type Profile } from './profile.js';
import { refuse, stackDepthExceeded } from './refusal.js';
import type { RuleContext } from './rule.js';
import { ruleOf } from './statement-rules.js';
import { StatementText, WholeText } from './statement-text.js';
import { type Survey, surveyStatement } from './survey.js';

export interface Problem {
  readonly refusal: Refusal;
  /** The body of a parse node, or an object that a rule made of several. */
  readonly about: unknown;
}

export interface ExaminedStatement {
  /** Undefined for AWS IAM GRANT and REVOKE, which PostgreSQL's grammar does not have. */
  readonly node: Node | undefined;
  readonly isAsync: boolean;
  readonly kind: StatementKind;
  readonly locking: JudgedStatement['locking'];
  readonly survey: Survey | undefined;
  readonly problems: readonly Problem[];
}

export type Examination =
  | { readonly statements: readonly ExaminedStatement[]; readonly masked: Buffer }
  | { readonly fault: SyntaxFault }
  | { readonly refusal: Refusal };

const zeroByte = refuse('22021', 'invalid byte sequence for encoding "UTF8": 0x00');

export class Examiner {
  readonly profile: Profile;
  readonly #parser: Parser;
  readonly #judgeInner: RuleContext['judgeInner'];

  private constructor(profile: Profile, parser: Parser, judgeInner: RuleContext['judgeInner']) {
    this.profile = profile;
    this.#parser = parser;
    this.#judgeInner = judgeInner;
  }

  /** `day` as of `createProfile`. */
  static async load(day: string | undefined): Promise<Examiner> {
    const profile = createProfile(day);
    const dialect = await createDialect({ profile: profile.day });
    return new Examiner(profile, await Parser.load(), (sql) => {
      const refused = dialect.judge(sql).statements.find(({ refusal }) => refusal !== undefined)?.refusal;
      return refused && refuse(refused.code, refused.message);
    });
  }

  /** After a text that nests too deep, which costs the parser one of its instances. */
  async renew(): Promise<void> {
    await Parser.load();
  }

  examine(sql: string): Examination {
    if (sql.includes('\0')) return { refusal: zeroByte };
    try {
      return this.#examine(sql);
    } catch (error) {
      if (error instanceof RangeError) return { refusal: stackDepthExceeded };
      throw error;
    }
  }

  #examine(sql: string): Examination {
    const own = maskOwnKeywords(sql, (text) => Array.isArray(this.#parser.parse(text)));
    const parsed = this.#parser.parse(own.masked);
    if (parsed === 'malformed') return { fault: this.#parser.explain(own.masked) };
    if (parsed === 'too deep') return { refusal: stackDepthExceeded };
    const whole = new WholeText(sql, own.masked);
    const statements = parsed.map(({ stmt, stmt_location: start = 0, stmt_len: length }) => {
      const end = length ? start + length : whole.bytes.length;
      const isWithin = (at: number) => at >= start && at < end;
      if ([...own.iamAt.keys()].some(isWithin)) return iamStatement;
      const isAsync = own.asyncAt.some(isWithin);
      return stmt === undefined
        ? { ...iamStatement, problems: [{ refusal: stackDepthExceeded, about: undefined }] }
        : this.#examineStatement(stmt, new StatementText(whole, start, end), isAsync);
    });
    return { statements, masked: whole.bytes };
  }

  #examineStatement(node: Node, text: StatementText, isAsync: boolean): ExaminedStatement {
    const problems: Problem[] = [];
    const collect = (refusal: Refusal, about: unknown) => void problems.push({ refusal, about });
    const body = Object.values(node)[0];
    const rule = ruleOf(kindOf(node));
    if ('code' in rule) {
      collect(rule, body);
      return { ...iamStatement, node, kind: 'session', problems };
    }
    const context: RuleContext = {
      profile: this.profile,
      isAsync,
      text,
      checks: [],
      collect,
      judgeInner: this.#judgeInner,
    };
    const survey = surveyStatement(node);
    for (const refusal of [judgeNode(node, context), judgeExpressions(survey, context)])
      if (refusal !== undefined) collect(refusal, body);
    return {
      node,
      isAsync,
      kind: kindOfStatement(node, rule.kind, survey),
      locking: lockingOf(survey),
      survey,
      problems,
    };
  }
}

const iamStatement: ExaminedStatement = {
  node: undefined,
  isAsync: false,
  kind: 'ddl',
  locking: 'none',
  survey: undefined,
  problems: [],
};
