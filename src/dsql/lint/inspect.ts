/** One round over a script: all findings of the text as it is now. */
import type { Examination, ExaminedStatement, Examiner, Problem } from '../../dialect/examiner.js';
import { stackDepthExceeded } from '../../dialect/refusal.js';
import { HeadgateError } from '../../kernel/errors.js';
import { classify } from './classify.js';
import { inspectCopy } from './copy-rows.js';
import { partOf } from './fixes/fixer.js';
import { fixers } from './fixes/fixers.js';
import { Positions } from './positions.js';
import type { Fix, RawFinding } from './rule.js';
import { SchemaModel } from './schema-model.js';
import { inspectSchema } from './schema-rules.js';
import { type Piece, type StatementPiece, splitScript } from './script.js';
import { StatementView } from './statement-view.js';
import { Suppressions } from './suppressions.js';
import { inspectTables } from './table-rules.js';
import { TransactionRules } from './transaction-rules.js';

/** Longer ones, such as an INSERT of many rows, are parsed again in each round. */
const longestCached = 20_000;
const mostCached = 5_000;

const mostDeep = 10;
const wornParser = new Error('The parser has to be loaded again.');

/** More statements of a text nest too deep than lint is willing to try. */
export class TooDeepError extends HeadgateError {
  constructor() {
    super(
      'HG_LINT_TOO_DEEP',
      `More than ${mostDeep} statements nest deeper than the parser can follow. Split the file, or these statements.`,
    );
  }
}

export class Inspector {
  readonly #examiner: Examiner;
  readonly #cache = new Map<string, Examination>();
  /** Statements that nest too deep. */
  readonly #deep = new Set<string>();

  constructor(examiner: Examiner) {
    this.#examiner = examiner;
  }

  async inspect(text: string): Promise<{ findings: RawFinding[]; pieces: Piece[] }> {
    const pieces = splitScript(text);
    const suppressions = new Suppressions(text, new Positions(text));
    const all = await this.#allFindings(text, pieces);
    const found = all.filter((finding) => !suppressions.has(finding));
    const findings = [...suppressions.findings, ...found].sort((a, b) => a.start - b.start);
    return { findings, pieces };
  }

  /** A statement that nests too deep wears out the parser: the round begins again with a new one. */
  async #allFindings(text: string, pieces: readonly Piece[]): Promise<RawFinding[]> {
    for (;;) {
      try {
        return [...this.#findings(text, pieces)];
      } catch (error) {
        if (error !== wornParser) throw error;
        if (this.#deep.size > mostDeep) throw new TooDeepError();
        await this.#examiner.renew();
      }
    }
  }

  *#findings(text: string, pieces: readonly Piece[]): Generator<RawFinding> {
    const model = new SchemaModel();
    const transactions = new TransactionRules();
    const newline = text.includes('\r\n') ? '\r\n' : '\n';
    for (const [at, piece] of pieces.entries()) {
      if (piece.kind === 'meta') yield psqlCommand(text, piece, pieces[at - 1], newline);
      if (piece.kind === 'unreadable') yield* this.#unreadable(text, piece);
      if (piece.kind !== 'statement') continue;
      const examination = this.#examine(text.slice(piece.start, piece.end));
      if (!('statements' in examination)) {
        yield brokenStatement(text, piece, examination);
        continue;
      }
      for (const examined of examination.statements) {
        const view = new StatementView(text, piece, examined, this.#examiner.profile, newline);
        yield* problemsOf(view, examined, model, examination.statements.length === 1);
        yield* inspectSchema(view, model);
        yield* inspectCopy(view, model);
        yield* transactions.inspect(view);
        model.add(view);
      }
    }
    yield* inspectTables(model);
  }

  /** PostgreSQL may read what the splitter can not. */
  *#unreadable(text: string, piece: Piece): Generator<RawFinding> {
    const examination = this.#examine(text.slice(piece.start, piece.end));
    const statement: StatementPiece = { ...piece, kind: 'statement', terminated: piece.end, data: undefined };
    if (!('statements' in examination)) yield brokenStatement(text, statement, examination);
    else
      for (const examined of examination.statements) {
        const view = new StatementView(text, statement, examined, this.#examiner.profile, '\n');
        yield* problemsOf(view, examined, new SchemaModel(), false);
      }
  }

  #examine(sql: string): Examination {
    const known = this.#cache.get(sql);
    if (known !== undefined) return known;
    if (this.#deep.has(sql)) return { refusal: stackDepthExceeded };
    const examination = this.#examiner.examine(sql);
    if ('refusal' in examination && examination.refusal === stackDepthExceeded) {
      this.#deep.add(sql);
      throw wornParser;
    }
    if (sql.length <= longestCached) {
      if (this.#cache.size >= mostCached) this.#cache.clear();
      this.#cache.set(sql, examination);
    }
    return examination;
  }
}

function* problemsOf(
  view: StatementView,
  examined: ExaminedStatement,
  model: SchemaModel,
  isAlone: boolean,
): Generator<RawFinding> {
  for (const problem of examined.problems) {
    const rule = classify(examined.node, problem);
    const { message, code } = problem.refusal;
    const fix = isAlone ? fixers[rule]?.({ view, problem, model }) : undefined;
    const { start, end } = isAlone ? findingPlace(view, problem, fix, model) : view.piece;
    const part = isAlone && fix === undefined ? commandPart(view, problem) : undefined;
    yield { rule, start, end, statement: view.piece.start, message, code, fix, part };
  }
}

/** One of several commands of ALTER TABLE. */
function commandPart(view: StatementView, { about }: Problem): RawFinding['part'] {
  const commands = view.body('AlterTableStmt')?.cmds ?? [];
  const index = commands.findIndex((node) => Object.values(node)[0] === about);
  const { table, commands: ranges } =
    commands.length > 1 && index >= 0 ? view.alterTable() : { table: '', commands: [] };
  const range = ranges[index];
  if (range === undefined || ranges.length !== commands.length) return undefined;
  return {
    removal: view.withoutItem(ranges, index),
    source: `ALTER TABLE ${table} ${view.sourceOf(range)};`,
  };
}

interface Place {
  readonly start: number;
  readonly end: number;
}

/** The clause that a fix changes or takes out, where it is inside of the part that the problem is about; that part otherwise. */
function findingPlace(
  view: StatementView,
  problem: Problem,
  fix: Fix | undefined,
  model: SchemaModel,
): Place {
  const lock = lockPlace(view, problem);
  if (lock !== undefined) return lock;
  const part = placeOf(view, problem, model);
  const edit = fix?.edits[0];
  if (edit === undefined || edit.end > part.end) return part;
  const text = view.text.slice(edit.start, edit.end);
  // Words that are added behind a token do not concern it.
  if (text !== '' && edit.text.startsWith(text)) return part;
  const start = edit.start + (text.length - text.trimStart().length);
  return start < edit.end && start >= part.start && start > view.piece.start
    ? { start, end: edit.end }
    : part;
}

/** The part of the statement that a problem is about. */
function placeOf(view: StatementView, problem: Problem, model: SchemaModel): Place {
  const whole = { start: view.piece.start, end: view.piece.end };
  const part = partOf({ view, problem, model });
  const isPart = part.first > 0;
  const { location } = (problem.about ?? {}) as { location?: number };
  if (location !== undefined && !isPart) {
    const at = view.tokenAt(location);
    return at < 0 ? whole : view.placeOf({ first: at, last: at });
  }
  return isPart ? view.placeOf(part) : whole;
}

/** PostgreSQL's tree has no place for a locking clause. */
function lockPlace(view: StatementView, { about }: Problem): Place | undefined {
  if (!(about !== null && typeof about === 'object' && 'clause' in about)) return undefined;
  const at = view.tokens.findIndex(
    ({ word }, index) =>
      word === 'FOR' && /^(?:UPDATE|SHARE|NO|KEY)$/.test(view.tokens[index + 1]?.word ?? ''),
  );
  return at < 0 ? undefined : view.placeOf({ first: at, last: at + 1 });
}

/** \\gset and the like end a statement that has no semicolon. */
function psqlCommand(
  text: string,
  { start, end }: Piece,
  before: Piece | undefined,
  newline: string,
): RawFinding {
  const isOpen =
    before?.kind === 'statement' && before.terminated === before.end && before.data === undefined;
  const line = text[end] === '\r' ? end + 2 : end + 1;
  const command = /^\\\S*/.exec(text.slice(start, end))?.[0] ?? '\\';
  return {
    rule: 'psql-command',
    start,
    end,
    statement: start,
    message: `${command} is a command of psql`,
    code: undefined,
    fix: {
      level: 'convert',
      edits: [{ start, end: Math.min(line, text.length), text: isOpen ? `;${newline}` : '' }],
    },
  };
}

function brokenStatement(
  text: string,
  { start, end }: { readonly start: number; readonly end: number },
  examination: Exclude<Examination, { statements: unknown }>,
): RawFinding {
  if ('refusal' in examination) {
    const { code, message } = examination.refusal;
    return { rule: 'nested-too-deep', start, end, statement: start, message, code, fix: undefined };
  }
  const { message, character } = examination.fault;
  const before = [...text.slice(start, end)].slice(0, character).join('');
  const at = Math.min(start + before.length, end);
  return { rule: 'syntax-error', start: at, end, statement: start, message, code: '42601', fix: undefined };
}
