/** Requests of the pooler's own to a server: among those of a client, or in place of one. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { sync } from '../../wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyFail,
  writeDescribe,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../wire/frontend-writers.js';
import { Target } from '../../wire/message-types.js';
import { SqlState } from '../../wire/sql-states.js';
import type { OwnRow } from './own-row.js';
import { Asked } from './reply-queue.js';
import type { ReplyRouter } from './reply-router.js';
import type { Replacement } from './reply-subjects.js';
import type { ServerCopy } from './server-statements.js';

/** A name that no statement has on a server. */
const noStatement = 'headgate_none';
/** The name of a statement and a portal for something of the pooler's own in the middle of a pipeline. */
const ownStatement = 'headgate_own';

export class OwnRequests {
  readonly #router: ReplyRouter;

  constructor(router: ReplyRouter) {
    this.#router = router;
  }

  /** The pooler's own request replaces the unnamed statement. */
  replacesUnnamed(): void {
    this.#router.unnamed.version++;
  }

  /** Sends one of the pooler's own queries. The answer is not passed on; the first row is collected in `row`. */
  ask(text: string, row?: OwnRow): void {
    this.#router.expect(Asked.ownQuery, row);
    this.replacesUnnamed();
    writeQuery(this.#router.toServer.mix(), text);
  }

  /** Sends a query of the pooler's own within the client's pipeline and transaction; whatever the client has there is unchanged. */
  askWithin(text: string): void {
    const writer = this.#router.toServer.mix();
    // The statement still exists if the last pipeline was cut short.
    this.#router.expect(Asked.ownClose);
    writeClose(writer, Target.statement, ownStatement);
    this.#router.expect(Asked.ownParse);
    writeParse(writer, { name: ownStatement, text });
    this.#router.expect(Asked.ownBind);
    writeBind(writer, { portal: ownStatement, statement: ownStatement });
    this.#router.expect(Asked.ownExecute);
    writeExecute(writer, ownStatement);
    for (const target of [Target.portal, Target.statement]) {
      this.#router.expect(Asked.ownClose);
      writeClose(writer, target, ownStatement);
    }
  }

  /** Ends a pipeline that no client will end. */
  sync(): void {
    this.#router.expect(Asked.ownSync);
    this.#router.toServer.mix().append(sync);
  }

  /** Ends a COPY that no client will send data for. */
  failCopy(reason: string): void {
    this.#router.copyIn.isUnderWay = false;
    writeCopyFail(this.#router.toServer.mix(), reason);
    if (this.#router.replies.head === Asked.execute && !this.#router.replies.owesSync) this.sync();
  }

  /** Closes a statement that the server has. The answer is not passed on. */
  closeStatement(copy: ServerCopy): void {
    this.#router.expect(Asked.ownClose, copy);
    writeClose(this.#router.toServer.mix(), Target.statement, copy.name);
  }

  /** Asks for the description of a statement; without a name, of the unnamed one. The answer is not passed on. */
  describeStatement(name: Buffer | undefined, subject: object): void {
    this.#router.expect(Asked.ownDescribe, subject);
    writeDescribe(this.#router.toServer.mix(), Target.statement, name);
  }

  /** The next request must fail. If the server's error has the code `insteadOf`, the client gets `error` in its place. */
  expectFailure(error: ErrorFields, insteadOf: string): void {
    this.#router.expect(Asked.mustFail, { error, insteadOf } satisfies Replacement);
  }

  /** Makes the server fail the pipeline with an error, which the client gets as `error`. */
  fail(error: ErrorFields): void {
    this.expectFailure(error, SqlState.invalidStatementName);
    writeDescribe(this.#router.toServer.mix(), Target.statement, noStatement);
  }
}
