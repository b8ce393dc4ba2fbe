/** Note on a connection that a statement sent earlier is now the one that runs. */
import type { Backend } from './backend.js';
import { Asked, type Subject } from './reply-queue.js';

export type PlacedKind =
  | typeof Asked.query
  | typeof Asked.parseBatch
  | typeof Asked.bindBatch
  | typeof Asked.standInBatch;

export class PlacedStatement {
  readonly #asked: PlacedKind;
  readonly #subject: Subject;

  constructor(asked: PlacedKind, subject?: Subject) {
    this.#asked = asked;
    this.#subject = subject;
  }

  expect(backend: Backend): void {
    if (this.#asked === Asked.query) backend.expect(Asked.query);
    else backend.expectWhole(this.#asked, this.#subject);
  }
}

export const placedQuery = new PlacedStatement(Asked.query);
