/** Gives one object a method of its own in place of its class's; programs can replace it again, and do not see it in a console. */
export function setOwnMethod(
  object: object,
  name: string,
  method: (this: never, ...args: never[]) => unknown,
): void {
  Object.defineProperty(object, name, { configurable: true, writable: true, value: method });
}
