/** Statements of one client that its server does not get: answers them, or inserts their answers between the server's. */
import type { LexicalSettings } from '../../../sql/lexical-settings.js';
import { literal } from '../../../sql/quote.js';
import { readSettingChange, type SettingChange } from '../../../sql/setting-change.js';
import { type ErrorFields, writeError } from '../../../wire/error-fields.js';
import { readyFailed, readyIdle, readyInTransaction } from '../../../wire/fixed-messages.js';
import { type ParseView, QueryView } from '../../../wire/frontend-views.js';
import { writeParse, writeQuery } from '../../../wire/frontend-writers.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { headerBytes, TransactionStatus } from '../../../wire/message-types.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import { Asked } from '../../servers/reply-queue.js';
import type { LocalReply } from '../../servers/reply-subjects.js';
import { MixedQuery, type OwnColumn, PathStatement, SwallowedStatement } from '../../servers/swallowed.js';
import type { KeptSettings } from '../../settings/kept-settings.js';
import { isNameList, quotedName, searchPath, setText } from '../../settings/settings.js';
import type { StatementEffects } from '../../settings/statement-effects.js';
import type { LocalAnswers } from './local-answers.js';
import type { SessionTracker } from './session-tracker.js';
import { type ForServer, type Judged, Problem, Swallower, Where } from './swallower.js';

/** The session that the statements belong to. */
export interface SwallowOwner {
  readonly kept: KeptSettings;
  readonly swallower: Swallower;
  readonly lexical: () => LexicalSettings;
  /** Sets another search path for the client; null: that of its startup. */
  readonly setPath: (value: string | null) => void;
  /** Reads the effects of a text on the session. */
  readonly read: (text: Buffer) => StatementEffects;
}

type Text = Pick<QueryView, 'source' | 'textStart' | 'textEnd'>;

const queryView = new QueryView();
const parseWriter = new MessageWriter();

export class SwallowRelay {
  readonly #owner: SwallowOwner;

  constructor(owner: SwallowOwner) {
    this.#owner = owner;
  }

  /** Answers a Query of a client without a server. True: the answer is written, except ReadyForQuery. False: a server is needed. */
  answer(message: MessageScanner, writer: MessageWriter, isInTransaction: boolean): boolean | ErrorFields {
    const { source, start, end, isWhole } = message;
    if (!isWhole || source.indexOf(0, start + headerBytes) !== end - 1) return false;
    const judged = this.#judge(
      queryView.read(source, start, end),
      isInTransaction ? Where.begun : Where.outside,
    );
    if (judged === undefined) return false;
    const [only] = judged;
    if (only instanceof Problem && judged.length === 1) return only.error;
    if (!areSwallowed(judged)) return false;
    this.#run(judged, writer);
    if (!isInTransaction) this.commit();
    return true;
  }

  /** A transaction that no server has begun is over. */
  commit(): void {
    this.#owner.kept.commit();
  }

  rollback(): void {
    this.#owner.kept.rollback();
  }

  #judge({ source, textStart, textEnd }: Text, where: Where): readonly Judged[] | undefined {
    const { swallower, lexical } = this.#owner;
    return swallower.judge(source, textStart, textEnd, lexical(), where);
  }

  #run(judged: readonly SwallowedStatement[], writer: MessageWriter): void {
    for (const statement of judged) {
      statement.run();
      statement.write(writer);
    }
  }

  /**
   * Handles a Query for a server. Returns its replacement, or undefined to send it unchanged. The server owes nothing by then,
   * or the Query waits.
   */
  query(backend: Backend, text: Text): 'later' | 'answered' | MixedQuery | undefined {
    const { status } = backend;
    if (status === TransactionStatus.failed || backend.isUnsynced) return undefined;
    const isOutside = status === TransactionStatus.idle;
    const judged = this.#judge(text, isOutside ? Where.outside : Where.inTransaction);
    if (judged === undefined) return undefined;
    if (backend.replies.size > 0) return 'later';
    const [only] = judged;
    if (areSwallowed(judged)) backend.expect(Asked.localQuery, this.#replyOf(judged));
    else if (judged.some((one) => one instanceof Problem)) {
      // Only the server can fail its own transaction.
      if (!isOutside || judged.length > 1) return undefined;
      backend.expect(Asked.localQuery, refusal((only as Problem).error));
    } else return this.#mix(judged as readonly (SwallowedStatement | ForServer)[]);
    return 'answered';
  }

  #replyOf(judged: readonly SwallowedStatement[]): LocalReply {
    return {
      write: (writer, status) => {
        this.#run(judged, writer);
        if (status === TransactionStatus.idle) this.commit();
        writer.append(readyOf(status));
      },
    };
  }

  #mix(judged: readonly (SwallowedStatement | ForServer)[]): MixedQuery | undefined {
    const texts: string[] = [];
    const before: SwallowedStatement[][] = [[]];
    const areSilent: boolean[] = [];
    for (const one of judged) {
      if (one instanceof SwallowedStatement) (before.at(-1) as SwallowedStatement[]).push(one);
      else
        for (const [index, text] of one.statements.entries()) {
          texts.push(text);
          areSilent.push(index < one.statements.length - 1);
          before.push([]);
        }
    }
    const text = texts.join('; ');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is meant.
    if (/[^\x00-\x7f]/.test(text)) return undefined;
    const effects = this.#owner.read(Buffer.from(text));
    const change = changeOf(texts) ?? effects.change;
    return new MixedQuery(text, { ...effects, change }, before, areSilent);
  }

  #pathOf({ source, textStart, textEnd }: Text): PathStatement | undefined {
    const { swallower, lexical, setPath } = this.#owner;
    const found = swallower.readPath(source, textStart, textEnd, lexical());
    if (found === undefined || (found.value !== undefined && !isNameList(found.value))) return undefined;
    return new PathStatement(found.value, setPath);
  }

  /** Makes the Parse for the server in place of one whose statement is swallowed when it is executed. */
  parse(backend: Backend, view: ParseView): { parse: Buffer; swallowed: SwallowedStatement } | undefined {
    const { status } = backend;
    if (status === TransactionStatus.failed) return undefined;
    const judged = this.#judge(view, status === TransactionStatus.idle ? Where.outside : Where.inTransaction);
    const [only] = judged ?? [];
    const swallowed = only instanceof SwallowedStatement && judged?.length === 1 ? only : this.#pathOf(view);
    if (swallowed === undefined) return undefined;
    // The server must run a statement that answers with the same number of columns and rows.
    const text = textFor(swallowed);
    writeParse(parseWriter, { name: view.isUnnamed ? '' : view.name(), text });
    return { parse: parseWriter.take(), swallowed };
  }
}

/** Text that a server runs in place of a swallowed statement. */
function textFor(swallowed: SwallowedStatement): string {
  const { column } = swallowed;
  if (swallowed instanceof PathStatement && swallowed.value === undefined)
    return 'SELECT $1::pg_catalog.text AS set_config';
  return column === undefined ? '' : selectOf(column);
}

/** The swallowing of a session whose settings the pooler keeps; undefined for others. */
export function swallowingFor(
  pool: BackendPool,
  tracker: SessionTracker,
  local: LocalAnswers,
): SwallowRelay | undefined {
  const { kept, followed } = tracker;
  if (kept === undefined) return undefined;
  const swallower = new Swallower({
    kept,
    user: pool.user,
    setReadOnly: (isReadOnly) => {
      local.isReadOnly = isReadOnly;
    },
    swallowed: (what) => pool.swallowed(what),
  });
  return new SwallowRelay({
    kept,
    swallower,
    lexical: () => tracker.lexical,
    setPath: (value) =>
      followed.want(searchPath, value === null ? undefined : setText('SET', searchPath, value)),
    read: (text) => tracker.read({ source: text, textStart: 0, textEnd: text.length }),
  });
}

/** Writes the server's part of a mixed text. */
export function sendMixed(backend: Backend, mixed: MixedQuery): void {
  backend.expect(Asked.query, mixed);
  writeQuery(backend.toServer.mix(), mixed.text);
}

function areSwallowed(judged: readonly Judged[]): judged is readonly SwallowedStatement[] {
  return judged.every((one) => one instanceof SwallowedStatement);
}

/** The statements run all together or not at all: the first tag confirms all of them. */
function changeOf(texts: readonly string[]): SettingChange | undefined {
  const changes = new Map<string, string | undefined>();
  let resetsAll = false;
  for (const text of texts) {
    if (/^show\b/i.test(text)) continue;
    const change = readSettingChange(text);
    if (change === undefined) return undefined;
    if (change.resetsAll) changes.clear();
    resetsAll ||= change.resetsAll;
    for (const [name, set] of change.changes) changes.set(name, set);
  }
  return { changes, resetsAll };
}

function selectOf({ name, value }: OwnColumn): string {
  const isEmpty = value === undefined ? ' WHERE false' : '';
  return `SELECT ${literal(value ?? '')}::pg_catalog.text AS ${quotedName(name)}${isEmpty}`;
}

function refusal(error: ErrorFields): LocalReply {
  return {
    write(writer, status) {
      writeError(writer, error);
      writer.append(readyOf(status));
    },
  };
}

function readyOf(status: TransactionStatus): Buffer {
  if (status === TransactionStatus.idle) return readyIdle;
  return status === TransactionStatus.failed ? readyFailed : readyInTransaction;
}
