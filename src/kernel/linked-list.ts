/** A doubly linked list whose links live in its items: no allocation, and any item leaves from any place in O(1). */

export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/** An item is in at most one list at a time; the owner of the item knows which. */
export class LinkedList<T extends Linked<T>> implements Iterable<T> {
  head: T | undefined;
  tail: T | undefined;
  size = 0;

  pushTail(item: T): void {
    item.previous = this.tail;
    item.next = undefined;
    if (this.tail === undefined) this.head = item;
    else this.tail.next = item;
    this.tail = item;
    this.size++;
  }

  /** Puts `item` in front of `successor`; without one, at the end. */
  insertBefore(successor: T | undefined, item: T): void {
    if (successor === undefined) {
      this.pushTail(item);
      return;
    }
    item.previous = successor.previous;
    item.next = successor;
    if (successor.previous === undefined) this.head = item;
    else successor.previous.next = item;
    successor.previous = item;
    this.size++;
  }

  remove(item: T): void {
    const { previous, next } = item;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.size--;
  }

  /** From head to tail. The item just yielded may be removed while iterating. */
  *[Symbol.iterator](): Iterator<T> {
    let item = this.head;
    while (item !== undefined) {
      const next: T | undefined = item.next;
      yield item;
      item = next;
    }
  }
}
