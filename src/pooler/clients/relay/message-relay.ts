/** Messages of one client on the way to its server: their effects on the session, and the answers to expect. */
import { QueryView } from '../../../wire/frontend-views.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend, headerBytes, TransactionStatus } from '../../../wire/message-types.js';
import type { Backend } from '../../servers/backend.js';
import { Asked } from '../../servers/reply-queue.js';
import type { MixedQuery } from '../../servers/swallowed.js';
import { keepsUnnamed } from '../../servers/unnamed-statement.js';
import { noEffects, unreadEffects } from '../../settings/statement-effects.js';
import { deallocatedName, deallocateReply } from './deallocate.js';
import { Passing } from './passing.js';
import type { RunningQuery } from './running-query.js';
import type { SessionTracker } from './session-tracker.js';
import type { StatementRelay } from './statement-relay.js';
import { type SwallowRelay, sendMixed } from './swallow-relay.js';

const queryView = new QueryView();

export class MessageRelay {
  readonly #tracker: SessionTracker;
  readonly #statements: StatementRelay;
  readonly #swallowing: SwallowRelay | undefined;
  readonly #running: RunningQuery | undefined;
  /** The next message has to wait until the last one is answered. */
  mustWait = false;

  constructor(
    tracker: SessionTracker,
    statements: StatementRelay,
    swallowing: SwallowRelay | undefined,
    running: RunningQuery | undefined,
  ) {
    this.#running = running;
    this.#tracker = tracker;
    this.#statements = statements;
    this.#swallowing = swallowing;
  }

  /** Notes the effects of a client's message and the answers to expect. Returns what to do with the message. */
  pass(backend: Backend, message: MessageScanner): Passing {
    const statements = this.#statements;
    this.mustWait = false;
    switch (message.type) {
      case Frontend.query:
        return this.#query(backend, message);
      case Frontend.parse:
        return statements.parse(backend, message);
      case Frontend.bind:
        return statements.bind(backend, message);
      case Frontend.execute:
        // Statements prepared behind this one may be deallocated with the others, or not.
        this.mustWait = statements.mayDiscard;
        return statements.execute(backend, message);
      case Frontend.sync:
        return this.#sync(backend);
      case Frontend.describe:
        return statements.describe(backend, message);
      case Frontend.close:
        return statements.close(backend, message);
      case Frontend.functionCall:
        this.#tracker.functionIsCalled(functionOf(message));
        this.#running?.batchEnds(backend.replies.owesBatch);
        backend.expect(Asked.query, keepsUnnamed);
        break;
      case Frontend.copyDone:
      case Frontend.copyFail:
        backend.endCopy();
        break;
      default:
    }
    return Passing.asItIs;
  }

  #query(backend: Backend, message: MessageScanner): Passing {
    const tracker = this.#tracker;
    const { source, start, end, isWhole } = message;
    const isPlain = isWhole && tracker.isPlainQuery(source, start, end);
    let found = isPlain ? noEffects : unreadEffects;
    // A server refuses a text with a zero inside.
    if (isWhole && !isPlain && source.indexOf(0, start + headerBytes) === end - 1) {
      const view = queryView.read(source, start, end);
      const name = deallocatedName(view);
      if (name !== undefined && !backend.isUnsynced) {
        if (backend.replies.size > 0) return Passing.later;
        if (this.#deallocate(backend, name)) return Passing.none;
      }
      const swallowed = this.#swallowing?.query(backend, view);
      if (swallowed !== undefined) return this.#swallow(backend, swallowed);
      found = tracker.read(view);
    }
    this.mustWait = found.mayDiscard;
    if (found !== noEffects) {
      this.#statements.changes.changeComes(backend, found.change);
      tracker.runs(found);
    }
    // For a text that comes in pieces, the first piece.
    this.#running?.asksText(source, start + headerBytes, isWhole ? end - 1 : end, backend.replies.owesBatch);
    backend.expect(Asked.query, found.change);
    return Passing.asItIs;
  }

  #swallow(backend: Backend, swallowed: 'later' | 'answered' | MixedQuery): Passing {
    if (swallowed === 'later') return Passing.later;
    if (swallowed === 'answered') this.#statements.unnamedChanged(undefined, undefined);
    else {
      this.mustWait = swallowed.effects.mayDiscard;
      this.#statements.changes.changeComes(backend, swallowed.effects.change);
      this.#tracker.runs(swallowed.effects);
      sendMixed(backend, swallowed);
    }
    return Passing.none;
  }

  /** Deallocates a statement that has another name on the server; false if the client does not have it. */
  #deallocate(backend: Backend, name: string): boolean {
    const statements = this.#statements;
    if (!statements.has(name)) return false;
    if (backend.status !== TransactionStatus.failed) statements.deallocate(name);
    statements.unnamedChanged(undefined, undefined);
    backend.expect(Asked.localQuery, deallocateReply);
    return true;
  }

  #sync(backend: Backend): Passing {
    // A server that takes COPY data would ignore the Sync.
    if (backend.copyIn.isUnderWay) {
      backend.copyIn.keepSync();
      return Passing.none;
    }
    this.#statements.sync(backend);
    this.#running?.batchEnds(backend.replies.owesBatch);
    backend.expect(Asked.sync);
    return Passing.asItIs;
  }
}

/** OID of the function that is called; 0 where the message ends before it. */
function functionOf({ source, start, end }: MessageScanner): number {
  return end - start >= headerBytes + 4 ? source.readUInt32BE(start + headerBytes) : 0;
}
