/** Passes on one client's Parse messages: under a name of the pooler's, or as its unnamed statement. */
import { copyOf } from '../../../wire/bytes.js';
import { ParseView } from '../../../wire/frontend-views.js';
import { writeParse } from '../../../wire/frontend-writers.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { Backend } from '../../servers/backend.js';
import { Asked } from '../../servers/reply-queue.js';
import type { SwallowedStatement } from '../../servers/swallowed.js';
import { UnnamedStatement } from '../../servers/unnamed-statement.js';
import { noEffects, type StatementEffects, unreadEffects } from '../../settings/statement-effects.js';
import { tooLongStatement, tooManyStatements } from '../session-errors.js';
import { statementCost } from './client-bounds.js';
import type { ClientStatements, NamedByClient } from './client-statements.js';
import { deallocatedName } from './deallocate.js';
import { Passing } from './passing.js';
import type { PlainBatches } from './plain-batches.js';
import type { StatementOwner, StatementPreparer } from './statement-preparer.js';
import type { StatementRefusals } from './statement-refusals.js';
import type { SwallowRelay } from './swallow-relay.js';
import type { UnansweredChanges } from './unanswered-changes.js';
import type { UnnamedRelay } from './unnamed-relay.js';

const parseView = new ParseView();
const swallowedView = new ParseView();
const parseWriter = new MessageWriter();

export interface ParserParts {
  readonly owner: StatementOwner;
  readonly named: ClientStatements;
  readonly unnamed: UnnamedRelay;
  readonly preparer: StatementPreparer;
  readonly plain: PlainBatches;
  readonly changes: UnansweredChanges;
  readonly refusals: StatementRefusals;
  readonly swallowing: SwallowRelay | undefined;
}

export class StatementParser {
  readonly #owner: StatementOwner;
  readonly #named: ClientStatements;
  readonly #unnamed: UnnamedRelay;
  readonly #preparer: StatementPreparer;
  readonly #plain: PlainBatches;
  readonly #changes: UnansweredChanges;
  readonly #refusals: StatementRefusals;
  readonly #swallowing: SwallowRelay | undefined;

  constructor(parts: ParserParts) {
    this.#owner = parts.owner;
    this.#named = parts.named;
    this.#unnamed = parts.unnamed;
    this.#preparer = parts.preparer;
    this.#plain = parts.plain;
    this.#changes = parts.changes;
    this.#refusals = parts.refusals;
    this.#swallowing = parts.swallowing;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    const { source, start, end } = message;
    const { pool, tracker } = this.#owner;
    const { settings } = tracker;
    const longest = message.rules.wholeUpTo[message.type] as number;
    // A longer message comes in pieces, unless they happen to arrive together.
    const isWhole = message.isWhole && message.size <= longest;
    const isKnown = isWhole && !tracker.isReadingUnsure;
    const known = isKnown ? this.#unnamed.plainOne(source, start, end, settings) : undefined;
    if (known !== undefined) return this.#parseUnnamed(backend, known);
    const view = isWhole ? parseView.read(source, start, end) : parseView.readName(source, start, end);
    const found = isWhole ? tracker.read(view) : unreadEffects;
    if (this.#swallowing !== undefined && isWhole && found !== noEffects) {
      const swallowed = this.#swallowing.parse(backend, view);
      if (swallowed !== undefined && (view.isUnnamed || this.#plain.renames))
        return this.#parseSwallowed(backend, swallowed.parse, swallowed.swallowed);
    }
    if (view.isUnnamed) {
      const given = found.mayDiscard ? deallocatedName(view) : undefined;
      if (given !== undefined && this.#named.get(given) !== undefined)
        return this.#parseDeallocate(backend, given);
      const isPlain = found === noEffects && !tracker.isReadingUnsure;
      // All clients of the pool share one object.
      const repeated = isPlain ? pool.repeated.meet(source, start, end, settings.planKey) : undefined;
      const own = isWhole && repeated === undefined ? copyOf(source, start, end) : undefined;
      const unnamed = repeated?.unnamed ?? new UnnamedStatement(own, found);
      if (isPlain) this.#unnamed.keepPlain(unnamed, settings, repeated);
      return this.#parseUnnamed(backend, unnamed);
    }
    this.#unnamed.describe(backend);
    if (!this.#plain.renames) {
      this.#owner.running?.parsedAs(view.nameKey(), source.subarray(start, end));
      backend.expect(Asked.parse);
      return Passing.asItIs;
    }
    if (this.#changes.isUnsure(backend, view.nameKey())) return Passing.later;
    if (isWhole) return this.#parseNamed(backend, view, found);
    return this.#refusals.forLimit(
      backend,
      'max_prepared_statement_size',
      tooLongStatement(message.size, longest),
    );
  }

  /** A name is given to a statement that is prepared when it is used. */
  ignore(backend: Backend, { source, start, end, isWhole }: MessageScanner): void {
    if (!isWhole) return;
    const view = parseView.read(source, start, end);
    const { bytes } = this.#named;
    const isTooMuch = bytes + statementCost(view.size) > this.#owner.bounds.maxClientStatementsSize;
    if (view.isUnnamed || isTooMuch || this.#named.get(view.nameKey()) !== undefined) return;
    this.#named.add(this.#preparer.ignored(backend, view, this.#owner.tracker.read(view)));
  }

  #parseUnnamed(backend: Backend, unnamed: UnnamedStatement): Passing {
    const { tally } = this.#owner.pool;
    tally.clientParses++;
    tally.serverParses++;
    this.#unnamed.parse(backend, unnamed);
    return Passing.asItIs;
  }

  /** Parse of a DEALLOCATE: only the client's name is given up, and the server deallocates something else. */
  #parseDeallocate(backend: Backend, name: string): Passing {
    if (this.#changes.isUnsure(backend, name)) return Passing.later;
    const named = this.#named.get(name) as NamedByClient;
    const nothing = this.#preparer.prepareNothing(backend);
    writeParse(parseWriter, { text: `DEALLOCATE ${nothing.toString('latin1')}` });
    const parse = parseWriter.take();
    this.#unnamed.parse(
      backend,
      new UnnamedStatement(parse, { ...noEffects, change: named, mayDiscard: true }),
    );
    backend.toServer.mix().append(parse);
    return Passing.none;
  }

  /** The server gets a harmless statement instead; the change takes effect when that is executed. */
  #parseSwallowed(backend: Backend, parse: Buffer, swallowed: SwallowedStatement): Passing {
    const effects = { ...noEffects, change: swallowed };
    const view = swallowedView.read(parse, 0, parse.length);
    if (!view.isUnnamed) {
      this.#unnamed.describe(backend);
      return this.#changes.isUnsure(backend, view.nameKey())
        ? Passing.later
        : this.#parseNamed(backend, view, effects);
    }
    this.#unnamed.parse(backend, new UnnamedStatement(parse, effects));
    backend.toServer.mix().append(parse);
    return Passing.none;
  }

  #parseNamed(backend: Backend, view: ParseView, effects: StatementEffects): Passing {
    const { pool } = this.#owner;
    const name = view.nameKey();
    const present = this.#named.get(name);
    if (present?.isUnparsed === true) this.#named.delete(present);
    else if (present !== undefined) {
      // The server checks the text first, for other errors in it.
      this.#preparer.tryParse(backend, view);
      const message = `prepared statement "${view.name()}" already exists`;
      const asPgBouncer = `prepared statement '${view.name()}' was already prepared`;
      return this.#refusals.refuse(backend, SqlState.duplicatePreparedStatement, message, asPgBouncer);
    }
    const { maxClientStatementsSize: most } = this.#owner.bounds;
    if (this.#named.bytes + statementCost(view.size) > most) this.#named.forgetUnparsed();
    const { bytes, size } = this.#named;
    if (bytes + statementCost(view.size) > most)
      return this.#refusals.forLimit(
        backend,
        'max_client_statements_size',
        tooManyStatements(size, bytes, most),
      );
    const hasJustChanged = this.#changes.hasJustChanged(backend);
    const isUnsure = this.#changes.areSettingsUnsure(backend);
    const isCrowded = backend.statements.isCrowded && backend.replies.size > 0;
    if (isUnsure || isCrowded) return Passing.later;
    pool.tally.clientParses++;
    this.#named.add(this.#preparer.parse(backend, view, effects, !hasJustChanged));
    this.#changes.nameChanges(backend, name);
    return Passing.none;
  }
}
