/** The ORM's own methods behind those that retry: an adapter on top of an adapter replaces its options, and does not retry twice. */

type Method = (...args: never[]) => unknown;

const originals = new WeakMap<Method, Method>();

/** Marks a method that retries. */
export function retrying<M extends Method>(method: M, original: M): M {
  originals.set(method, original);
  return method;
}

/** The method that does not retry. */
export function withoutRetries<M extends Method>(method: M): M {
  return (originals.get(method) as M | undefined) ?? method;
}
