import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Asked, ReplyQueue } from '../../../src/pooler/servers/reply-queue.js';
import { complaint } from '../../support/text-growth.js';

const bindBatch: Asked[] = [Asked.bind, Asked.describePortal, Asked.execute, Asked.sync];
const parseBatch: Asked[] = [Asked.parse, ...bindBatch];
const standInBatch: Asked[] = [Asked.standInBind, ...bindBatch.slice(1)];
const wholes = {
  parseBatch: { whole: Asked.parseBatch, entries: parseBatch },
  bindBatch: { whole: Asked.bindBatch, entries: bindBatch },
  standInBatch: { whole: Asked.standInBatch, entries: standInBatch },
};
const others: Asked[] = [Asked.query, Asked.ownQuery, Asked.parse, Asked.bind, Asked.execute, Asked.sync];

type Step = keyof typeof wholes | 'answer' | 'fail' | 'copy' | Asked;
const steps = fc.array(
  fc.oneof(
    fc.constantFrom<Step>(
      'parseBatch',
      'bindBatch',
      'standInBatch',
      'fail',
      'copy',
      Asked.copyEnd,
      ...others,
    ),
    {
      weight: 2,
      arbitrary: fc.constant<Step>('answer'),
    },
  ),
  { maxLength: 80 },
);

/** A queue of whole batches beside one of the same batches, entry by entry. */
class Twins {
  readonly whole = new ReplyQueue();
  readonly apart = new ReplyQueue();

  take(step: Step): void {
    const subject = {};
    if (step === 'answer') this.#answer();
    else if (step === 'fail') this.#fail();
    else if (step === 'copy') this.#beginCopy();
    else if (step === 'parseBatch' || step === 'bindBatch' || step === 'standInBatch') {
      const { whole, entries } = wholes[step];
      this.whole.push(whole, subject);
      for (const [place, asked] of entries.entries())
        this.apart.push(asked, place === 0 ? subject : undefined);
    } else for (const queue of [this.whole, this.apart]) queue.push(step, subject);
  }

  #look(): void {
    if (this.whole.isHeadWhole) this.whole.unfold();
    expect(this.whole.head).toBe(this.apart.head);
    expect(this.whole.headSubject).toBe(this.apart.headSubject);
  }

  #answer(): void {
    this.#look();
    if (this.apart.size === 0) return;
    this.whole.shift();
    this.apart.shift();
  }

  #fail(): void {
    this.#look();
    const head = this.apart.head;
    if (head === 0 || head <= Asked.ownSync) return;
    expect(this.whole.dropUntilSync()).toEqual(this.apart.dropUntilSync());
  }

  #beginCopy(): void {
    this.#look();
    expect(this.whole.copyBegan()).toEqual(this.apart.copyBegan());
  }

  check(): void {
    const { whole, apart } = this;
    expect(whole.owesSync).toBe(apart.owesSync);
    expect(whole.owesBatch).toBe(apart.owesBatch);
    expect(whole.batchesDone).toBe(apart.batchesDone);
    expect(whole.batchesSent).toBe(apart.batchesSent);
    expect(whole.size === 0).toBe(apart.size === 0);
  }

  get isEmpty(): boolean {
    return this.apart.size === 0;
  }
}

test('a whole batch owes what its messages owe, one by one', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const twins = new Twins();
      for (const step of taken) {
        twins.take(step);
        twins.check();
      }
      while (!twins.isEmpty) {
        twins.take('answer');
        twins.check();
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['batch from Parse on', Asked.parseBatch, parseBatch],
  ['batch from Bind on', Asked.bindBatch, bindBatch],
  // The server is asked for no more than this.
  ['batch from Bind on in place of one from Parse on', Asked.standInBatch, bindBatch],
])('the parts of the answer to a whole %s are those of its messages', (_, whole, entries) => {
  const one = new ReplyQueue();
  one.push(whole, {});
  const many = new ReplyQueue();
  for (const asked of entries) many.push(asked);
  expect(one.batchParts).toBe(many.batchParts);
  one.clear();
  expect([one.size, one.batchParts, one.batchesDone]).toEqual([0, -1, 1]);
});

test('a COPY that begins keeps the requests of its batch, and drops its Syncs up to its end', () => {
  const queue = new ReplyQueue();
  const [one, two] = [{}, {}];
  queue.push(Asked.execute, one);
  queue.push(Asked.bindBatch, two);
  queue.push(Asked.sync);
  queue.push(Asked.copyEnd);
  queue.push(Asked.sync);
  queue.push(Asked.copyEnd);
  expect(queue.copyBegan()).toEqual({ hasEnded: true, ignoredSyncs: 2 });
  const left: unknown[] = [];
  for (; queue.size > 0; queue.shift()) left.push([queue.head, queue.headSubject]);
  expect(left).toEqual([
    [Asked.execute, one],
    [Asked.bind, two],
    [Asked.describePortal, undefined],
    [Asked.execute, undefined],
    [Asked.sync, undefined],
    [Asked.copyEnd, undefined],
  ]);
  expect(queue.batchesDone).toBe(3);
});

test('the work of COPYs in one pipeline grows with their number, and not with its square', () => {
  const copy = (pipeline: string): void => {
    const queue = new ReplyQueue();
    for (let n = 0; n < pipeline.length; n++) {
      queue.push(Asked.query);
      queue.push(Asked.copyEnd);
    }
    while (queue.size > 0) {
      queue.copyBegan();
      queue.shift();
    }
  };
  expect(complaint(copy, (copies) => 'c'.repeat(copies), 16_384)).toBeUndefined();
});
