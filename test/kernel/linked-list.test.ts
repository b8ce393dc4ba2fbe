// The list against an array that does the same.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Linked, LinkedList } from '../../src/kernel/linked-list.js';

class Item implements Linked<Item> {
  readonly name: number;
  previous: Item | undefined = undefined;
  next: Item | undefined = undefined;

  constructor(name: number) {
    this.name = name;
  }
}

function backwards(list: LinkedList<Item>): number[] {
  const names: number[] = [];
  for (let item = list.tail; item !== undefined; item = item.previous) names.push(item.name);
  return names;
}

test('A linked list is what an array would be after any pushes, insertions and removals', () => {
  const command = fc.tuple(fc.constantFrom('push', 'insert', 'remove'), fc.nat());
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const list = new LinkedList<Item>();
      const model: Item[] = [];
      for (const [what, where] of commands) {
        const at = model.length === 0 ? 0 : where % model.length;
        if (what === 'remove') {
          const [item] = model.splice(at, 1);
          if (item !== undefined) list.remove(item);
        } else {
          const item = new Item(where);
          if (what === 'push') {
            list.pushTail(item);
            model.push(item);
          } else {
            list.insertBefore(model[at], item);
            model.splice(at, 0, item);
          }
        }
        const names = model.map((item) => item.name);
        expect([...list].map((item) => item.name)).toEqual(names);
        expect(backwards(list)).toEqual(names.toReversed());
        expect(list.size).toBe(model.length);
        expect([list.head, list.tail]).toEqual([model[0], model.at(-1)]);
      }
    }),
  );
});

test('A linked list leaves nothing of itself in an item that left', () => {
  const list = new LinkedList<Item>();
  const items = [new Item(1), new Item(2), new Item(3)] as const;
  for (const item of items) list.pushTail(item);
  list.remove(items[1]);
  expect(items[1]).toMatchObject({ previous: undefined, next: undefined });
});

test('A linked list lets the item just seen be removed in the middle of a walk', () => {
  const list = new LinkedList<Item>();
  for (let name = 0; name < 10; name++) list.pushTail(new Item(name));
  const seen: number[] = [];
  for (const item of list) {
    seen.push(item.name);
    if (item.name % 2 === 0) list.remove(item);
  }
  expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect([...list].map((item) => item.name)).toEqual([1, 3, 5, 7, 9]);
});
