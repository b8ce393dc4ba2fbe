/**
 * DSQL's additions to PostgreSQL's grammar, found by tokens: ASYNC in CREATE INDEX and ALTER TABLE, and AWS IAM GRANT
 * and REVOKE.
 *
 * The text is masked byte for byte, so that PostgreSQL's parser can read it and offsets do not change: ASYNC becomes
 * spaces, and an AWS IAM statement becomes a SHOW that the judge replaces.
 */
import { Token, Tokenizer } from '../sql/tokenizer.js';
import type { IamMapping } from './judgement.js';

export interface OwnKeywords {
  readonly masked: string;
  /** Byte offsets at which an ASYNC was. */
  readonly asyncAt: readonly number[];
  /** Mappings by the byte offset of their first token. */
  readonly iamAt: ReadonlyMap<number, IamMapping>;
}

interface Piece {
  readonly token: Token;
  readonly start: number;
  readonly end: number;
}

/** Replaces an AWS IAM statement until the judge sees it; shorter than `AWS IAM`. */
const placeholder = 'SHOW x';
/** CREATE UNIQUE INDEX ASYNC. */
const longestHead = 4;
const none: ReadonlyMap<number, IamMapping> = new Map();

/** `parses` tells whether PostgreSQL's grammar accepts a text. */
export function maskOwnKeywords(sql: string, parses: (text: string) => boolean): OwnKeywords {
  if (!mayHold(sql)) return { masked: sql, asyncAt: [], iamAt: none };
  const bytes = Buffer.from(sql);
  const asyncAt: number[] = [];
  const iamAt = new Map<number, IamMapping>();
  for (const pieces of statementsOf(bytes)) {
    const async = findAsync(bytes, pieces, parses);
    if (async !== undefined) {
      asyncAt.push(async.start);
      bytes.fill(' ', async.start, async.end);
      continue;
    }
    const mapping = readIamMapping(bytes, pieces);
    const [first, last] = [pieces[0], pieces.at(-1)];
    if (mapping === undefined || first === undefined || last === undefined) continue;
    iamAt.set(first.start, mapping);
    bytes.fill(' ', first.start, last.end);
    bytes.write(placeholder, first.start, 'latin1');
  }
  if (asyncAt.length === 0 && iamAt.size === 0) return { masked: sql, asyncAt, iamAt };
  return { masked: bytes.toString(), asyncAt, iamAt };
}

/** Spares most texts the scan. */
function mayHold(sql: string): boolean {
  const folded = sql.toLowerCase();
  return folded.includes('async') || folded.includes('aws');
}

/** Tokens of each statement, without the semicolons. Stops where the text is unreadable, which PostgreSQL refuses. */
function* statementsOf(bytes: Buffer): Generator<Piece[]> {
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'literal');
  let pieces: Piece[] = [];
  for (;;) {
    const token = tokens.next();
    if (token === Token.unreadable) return;
    if (token !== Token.end && token !== Token.semicolon) {
      pieces.push({ token, start: tokens.start, end: tokens.end });
      continue;
    }
    if (pieces.length > 0) yield pieces;
    if (token === Token.end) return;
    pieces = [];
  }
}

function wordAt(bytes: Buffer, pieces: readonly Piece[], index: number): string | undefined {
  const piece = pieces[index];
  return piece?.token === Token.word ? textOf(bytes, piece).toUpperCase() : undefined;
}

function textOf(bytes: Buffer, piece: Piece): string {
  return bytes.toString('utf8', piece.start, piece.end);
}

/** ASYNC behind CREATE [UNIQUE] INDEX is the keyword, quoted it is a name. Behind ALTER TABLE it is a table where PostgreSQL can read it so. */
function findAsync(
  bytes: Buffer,
  pieces: readonly Piece[],
  parses: (text: string) => boolean,
): Piece | undefined {
  const words = Array.from({ length: longestHead }, (_, index) => wordAt(bytes, pieces, index));
  const head = words.join(' ');
  if (head === 'CREATE UNIQUE INDEX ASYNC') return pieces[3];
  if (head.startsWith('CREATE INDEX ASYNC ')) return pieces[2];
  if (!head.startsWith('ALTER TABLE ASYNC ')) return undefined;
  const [first, last] = [pieces[0], pieces.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return parses(bytes.toString('utf8', first.start, last.end)) ? undefined : pieces[2];
}

/** AWS IAM GRANT role TO 'arn', AWS IAM REVOKE role FROM 'arn'. */
function readIamMapping(bytes: Buffer, pieces: readonly Piece[]): IamMapping | undefined {
  const [, , , role, , arn] = pieces;
  if (pieces.length !== 6 || role === undefined || arn === undefined) return undefined;
  const word = (index: number) => wordAt(bytes, pieces, index);
  if (word(0) !== 'AWS' || word(1) !== 'IAM' || arn.token !== Token.string) return undefined;
  const isGrant = word(2) === 'GRANT';
  if (word(4) !== (isGrant ? 'TO' : 'FROM') || (!isGrant && word(2) !== 'REVOKE')) return undefined;
  const quoted = textOf(bytes, arn);
  if (!quoted.startsWith("'")) return undefined;
  const value = quoted.slice(1, -1).replaceAll("''", "'");
  if (role.token === Token.word) return { isGrant, role: textOf(bytes, role).toLowerCase(), arn: value };
  const name = textOf(bytes, role);
  if (role.token !== Token.quotedName || !name.startsWith('"')) return undefined;
  return { isGrant, role: name.slice(1, -1).replaceAll('""', '"'), arn: value };
}
