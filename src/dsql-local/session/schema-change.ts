/** DDL: runs at once, also while other transactions use the table; these fail with OC001. */

import type { JudgedStatement } from '../../dialect/judgement.js';
import { Tokenizer } from '../../sql/tokenizer.js';
import { command } from '../conflicts/eviction.js';
import type { Transaction } from '../conflicts/transaction.js';
import { hidden, runHidden } from '../postgres/hidden-commands.js';
import type { Link } from '../postgres/link.js';
import { errorOf, StatementFailed, translate } from './errors.js';
import { HeldAnswer } from './held-answer.js';
import { qualified } from './relation-names.js';
import type { RunOptions } from './run-options.js';
import type { Unit } from './unit.js';

export class SchemaChange {
  readonly #options: RunOptions;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  get #link(): Link {
    return this.#options.participant.link;
  }

  /** A DDL statement. Its answer is sent when the limits of the catalog are kept. */
  async run(unit: Unit, transaction: Transaction): Promise<void> {
    const { conflicts, participant, dialect } = this.#options;
    for (const check of unit.statement.checks) await this.check(check);
    const held = new HeldAnswer(this.#options, 0);
    transaction.hasDdl = true;
    await conflicts.evicting(participant, 'schema', () =>
      this.#options.participant.exchange([
        hidden('wait_for_locks'),
        { bytes: unit.bytes, take: held.take },
        hidden('refuse_locks'),
      ]),
    );
    if (held.error !== undefined) {
      held.send();
      throw new StatementFailed(translate(held.error));
    }
    await this.check(dialect.limitCheck);
    held.send();
  }

  /** A query that answers with a refusal, or with no row. */
  async check(sql: string): Promise<void> {
    const part = command(sql);
    await this.#options.participant.exchange([part]);
    const [[code, message] = []] = part.answer.rows();
    if (code !== undefined && code !== null)
      throw new StatementFailed(errorOf({ code, message: message ?? '' }));
  }

  /** A unique index whose build has failed stays, invalid, until it is dropped. */
  async #leaveInvalid(sql: string, table: string): Promise<void> {
    const part = command(withoutUnique(sql));
    await this.#options.participant.exchange([part]);
    if (part.answer.error !== undefined) throw new StatementFailed(translate(part.answer.error));
    await runHidden(this.#link, 'invalidate_newest_index', [table]);
  }

  /** CREATE INDEX ASYNC and the like: builds at once, and tells of a job that is done, or has failed. */
  async job(statement: JudgedStatement, id: string, transaction: Transaction): Promise<void> {
    const { conflicts, participant, dialect } = this.#options;
    const { job } = statement;
    if (job === undefined) return;
    for (const check of statement.checks) await this.check(check);
    transaction.hasDdl = true;
    const part = command(statement.sql);
    await conflicts.evicting(participant, 'schema', () =>
      this.#options.participant.exchange([
        hidden('wait_for_locks'),
        hidden('savepoint'),
        part,
        hidden('release'),
        hidden('refuse_locks'),
      ]),
    );
    const { error } = part.answer;
    // Errors of the rows are found by the job, after the statement has succeeded.
    const isOfRows = error?.code.startsWith('23') === true;
    if (error !== undefined && !isOfRows) throw new StatementFailed(translate(error));
    const table = qualified(job.schema, job.table);
    if (isOfRows) await this.#options.participant.exchange([hidden('rollback_to'), hidden('release')]);
    if (isOfRows && job.type === 'INDEX_BUILD') await this.#leaveInvalid(statement.sql, table);
    await this.check(dialect.limitCheck);
    const name = job.object ?? job.table;
    await runHidden(this.#link, 'add_job', [
      id,
      isOfRows ? 'failed' : 'completed',
      error?.message ?? null,
      job.type,
      table,
      name,
    ]);
  }
}

/** UNIQUE is the second word of a statement that builds a unique index. */
function withoutUnique(sql: string): string {
  const bytes = Buffer.from(sql);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'literal');
  tokens.next();
  tokens.next();
  return bytes.fill(' ', tokens.start, tokens.end).toString();
}
