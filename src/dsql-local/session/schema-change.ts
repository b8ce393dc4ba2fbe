/** DDL: runs at once, whoever has the table open; their transactions fail with OC001. */

import { command } from '../conflicts/eviction.js';
import type { Transaction } from '../conflicts/transaction.js';
import type { JudgedStatement } from '../dialect/judgement.js';
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
    // What the rows are to blame for is found out by the job, after the statement has succeeded.
    const isOfRows = error?.code.startsWith('23') === true;
    if (error !== undefined && !isOfRows) throw new StatementFailed(translate(error));
    if (isOfRows) await this.#options.participant.exchange([hidden('rollback_to'), hidden('release')]);
    await this.check(dialect.limitCheck);
    const table = qualified(job.schema, job.table);
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
