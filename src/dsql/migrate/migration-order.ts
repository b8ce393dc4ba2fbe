/** The order of migrations by their names: Flyway's versions, timestamps, numbers, or plain names. */

const flyway = /^V(\d+(?:[._]\d+)*)__/;
const leadingNumber = /^\d+/;
const digits = /(\d+)/;

/** The version in a name: `1.2` of `V1_2__x.sql`, `0003` of `0003_x.sql`; undefined where there is none. */
export function versionOf(name: string): string | undefined {
  return flyway.exec(name)?.[1]?.replaceAll('_', '.') ?? leadingNumber.exec(name)?.[0];
}

export function isFlyway(name: string): boolean {
  return flyway.test(name);
}

/** Numbers count as numbers, so that 10 comes after 9. Versions before names; equal ones by their whole names. */
export function compareNames(one: string, other: string): number {
  const [version, otherVersion] = [versionOf(one), versionOf(other)];
  if (version !== undefined && otherVersion !== undefined) {
    const byVersion = compareVersions(version, otherVersion);
    if (byVersion !== 0) return byVersion;
  }
  return compareNaturally(one, other);
}

/** `1`, `01` and `1.0` are the same version. */
export function compareVersions(one: string, other: string): number {
  const [parts, otherParts] = [one.split('.'), other.split('.')];
  for (let index = 0; index < Math.max(parts.length, otherParts.length); index++) {
    const order = compareNumbers(parts[index] ?? '0', otherParts[index] ?? '0');
    if (order !== 0) return order;
  }
  return 0;
}

function compareNaturally(one: string, other: string): number {
  const [parts, otherParts] = [one.split(digits), other.split(digits)];
  for (let index = 0; index < Math.min(parts.length, otherParts.length); index++) {
    const [part, otherPart] = [parts[index] as string, otherParts[index] as string];
    // Every second part is a number.
    const order = index % 2 === 1 ? compareNumbers(part, otherPart) : compareTexts(part, otherPart);
    if (order !== 0) return order;
  }
  return parts.length - otherParts.length || compareTexts(one, other);
}

/** Compares numbers of any length: timestamps have more digits than a double holds exactly. */
function compareNumbers(one: string, other: string): number {
  const [number, otherNumber] = [BigInt(one), BigInt(other)];
  if (number === otherNumber) return 0;
  return number < otherNumber ? -1 : 1;
}

/** Not by locale: the order must be the same on every machine. */
function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
