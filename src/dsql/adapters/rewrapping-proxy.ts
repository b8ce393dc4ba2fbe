/** Stands in for an object whose methods need the object itself, because they read private fields of it. */

type Method = (...args: unknown[]) => unknown;

/**
 * Has `overrides` in place of the object's own methods. What a method returns stays as it is, except for further objects of the
 * same class, such as a copy with other settings: those get the same overrides.
 */
export function withOverrides<T extends object>(
  object: T,
  overrides: (original: T) => Readonly<Record<string, Method>>,
): T {
  const own = overrides(object);
  const known = new Map<PropertyKey, { readonly original: unknown; readonly bound: Method }>();
  const rewrap = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || value === object) return value;
    return value.constructor === object.constructor ? withOverrides(value as T, overrides) : value;
  };
  const bind = (key: PropertyKey, original: Method): Method => {
    const before = known.get(key);
    if (before?.original === original) return before.bound;
    const bound: Method = (...args) => rewrap(original.apply(object, args));
    known.set(key, { original, bound });
    return bound;
  };
  return new Proxy(object, {
    get(target, key) {
      if (typeof key === 'string' && Object.hasOwn(own, key)) return own[key];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' && key !== 'constructor' ? bind(key, value as Method) : value;
    },
  });
}
