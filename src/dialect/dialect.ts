/** Judges SQL texts as the Aurora DSQL of one day would. */
import type { RawStmt } from 'libpg-query';
import { limitCheck } from './catalog-checks.js';
import { judgeIamMapping, judgeStatement, refusedText } from './judge-statement.js';
import type { Dialect, Judgement, Refusal } from './judgement.js';
import { maskOwnKeywords, type OwnKeywords } from './own-keywords.js';
import { Parser } from './parser.js';
import { createProfile, type Profile } from './profile.js';
import { refuse, stackDepthExceeded } from './refusal.js';
import { judgeStartupParameter } from './settings.js';
import { StatementText, WholeText } from './statement-text.js';
import { VerdictCache } from './verdict-cache.js';

export interface DialectOptions {
  /** A day, `2026-09-15`; the newest known DSQL when it is not given. */
  readonly profile?: string | undefined;
}

export async function createDialect({ profile }: DialectOptions = {}): Promise<Dialect> {
  const day = createProfile(profile);
  return new DatedDialect(day, await Parser.load());
}

const malformed: Judgement = { statements: [], isMalformed: true };
const zeroByte = refuse('22021', 'invalid byte sequence for encoding "UTF8": 0x00');

class DatedDialect implements Dialect {
  readonly limitCheck = limitCheck;
  readonly #profile: Profile;
  readonly #parser: Parser;
  readonly #cache = new VerdictCache();

  constructor(profile: Profile, parser: Parser) {
    this.#profile = profile;
    this.#parser = parser;
  }

  get profile(): string {
    return this.#profile.day;
  }

  judge(sql: string): Judgement {
    const known = this.#cache.get(sql);
    if (known !== undefined) return known;
    const judgement = this.#judgeNew(sql);
    // This verdict is not cached: whether a text nests too deep depends on the stack of the caller.
    if (judgement.statements[0]?.refusal !== stackDepthExceeded) this.#cache.set(sql, judgement);
    return judgement;
  }

  judgeParameter(name: string): Refusal | undefined {
    return judgeStartupParameter(name, this.#profile);
  }

  #judgeNew(sql: string): Judgement {
    // The parser reads up to a zero byte, and would judge less than the text.
    if (sql.includes('\0')) return refuseText(sql, zeroByte);
    try {
      const own = maskOwnKeywords(sql, (text) => Array.isArray(this.#parser.parse(text)));
      const parsed = this.#parser.parse(own.masked);
      if (parsed === 'malformed') return malformed;
      if (parsed === 'too deep') return refuseText(sql, stackDepthExceeded);
      return { statements: this.#judgeAll(sql, own, parsed), isMalformed: false };
    } catch (error) {
      if (error instanceof RangeError) return refuseText(sql, stackDepthExceeded);
      throw error;
    }
  }

  /** Drops the position: one in the inner text would mean nothing to the client. */
  #judgeInner(sql: string): Refusal | undefined {
    const refused = this.#judgeNew(sql).statements.find(({ refusal }) => refusal !== undefined);
    return refused?.refusal && refuse(refused.refusal.code, refused.refusal.message);
  }

  #judgeAll(sql: string, own: OwnKeywords, parsed: readonly RawStmt[]): Judgement['statements'] {
    const whole = new WholeText(sql, own.masked);
    const asyncs = own.asyncAt.values();
    const mappings = own.iamAt.entries();
    const judgeInner = (inner: string) => this.#judgeInner(inner);
    let nextAsync = asyncs.next();
    let nextMapping = mappings.next();
    return parsed.map(({ stmt, stmt_location: start = 0, stmt_len: length }) => {
      const end = length ? start + length : whole.bytes.length;
      const text = new StatementText(whole, start, end);
      if (!nextMapping.done && nextMapping.value[0] < end) {
        const [, mapping] = nextMapping.value;
        nextMapping = mappings.next();
        return judgeIamMapping(text.source, mapping);
      }
      const isAsync = !nextAsync.done && nextAsync.value < end;
      if (isAsync) nextAsync = asyncs.next();
      return stmt === undefined
        ? refusedText(text.source, stackDepthExceeded)
        : judgeStatement(stmt, text, isAsync, this.#profile, judgeInner);
    });
  }
}

function refuseText(sql: string, refusal: Refusal): Judgement {
  return { statements: [refusedText(sql, refusal)], isMalformed: false };
}
