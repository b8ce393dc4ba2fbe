// The heap against a list that is sorted each time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap, type HeapItem } from '../../src/kernel/heap.js';

class Item implements HeapItem {
  heapKey: number;
  heapIndex = -1;

  constructor(key: number) {
    this.heapKey = key;
  }
}

test('A heap has the smallest key on top after any pushes and removals', () => {
  const key = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.double({ noNaN: true }));
  const command = fc.oneof(fc.record({ push: key }), fc.record({ removeAt: fc.nat() }));
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const heap = new Heap<Item>();
      const model: Item[] = [];
      for (const todo of commands) {
        if ('push' in todo) {
          const item = new Item(todo.push);
          heap.push(item);
          model.push(item);
        } else if (model.length > 0) {
          const [item] = model.splice(todo.removeAt % model.length, 1) as [Item];
          heap.remove(item);
          expect(item.heapIndex).toBe(-1);
        }
        expect(heap.size).toBe(model.length);
        const smallest = model.reduce(
          (least, item) => Math.min(least, item.heapKey),
          Number.POSITIVE_INFINITY,
        );
        expect(heap.peek()?.heapKey ?? Number.POSITIVE_INFINITY).toBe(smallest);
      }
    }),
  );
});

test('A heap sorts', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (keys) => {
      const heap = new Heap<Item>();
      for (const key of keys) heap.push(new Item(key));
      const sorted: number[] = [];
      for (let top = heap.peek(); top !== undefined; top = heap.peek()) {
        sorted.push(top.heapKey);
        heap.remove(top);
      }
      expect(sorted).toEqual(keys.toSorted((a, b) => a - b));
    }),
  );
});

test('A heap takes no notice when something leaves that is not in it', () => {
  const heap = new Heap<Item>();
  const [kept, stranger] = [new Item(1), new Item(0)];
  heap.push(kept);
  heap.remove(stranger);
  heap.remove(stranger);
  expect(heap.peek()).toBe(kept);
});
