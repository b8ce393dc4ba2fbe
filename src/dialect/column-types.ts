/** Judges the type of a column or domain, and its declared size. */
import type { TypeName } from 'libpg-query';
import { Token } from '../sql/tokenizer.js';
import type { Refusal } from './judgement.js';
import { integerOf, namesOf } from './parse-tree.js';
import { refuse, unsupported } from './refusal.js';
import type { RuleContext } from './rule.js';
import { readType, serialTypes, storedTypes } from './type-names.js';

const longestChar = 4096;
const longestVarchar = 65_535;
const numericPrecision = 1000;
const olderNumericPrecision = 38;
const largestScale = 1000;
/** Precision and scale of a numeric that declares none. */
const plainNumeric = '(18,6)';

export function judgeColumnType(type: TypeName, context: RuleContext): Refusal | undefined {
  const serial = namesOf(type.names);
  if (serial.length === 1 && serialTypes.has(serial[0] ?? '')) {
    const suffix = (type.arrayBounds?.length ?? 0) > 0 ? '[]' : '';
    const position = context.text.positionOf(type.location ?? 0);
    return refuse('42704', `type "${serial[0]}${suffix}" does not exist`, position);
  }
  const { internal, canonical, isArray, isBuiltIn } = readType(type);
  if (isArray) return unsupported(`datatype ${canonical} not supported`);
  if (!isBuiltIn) return undefined;
  const stored = Object.hasOwn(storedTypes, internal) ? storedTypes[internal] : undefined;
  if (stored === undefined || (stored.since !== undefined && !context.profile.accepts(stored.since)))
    return unsupported(`datatype ${canonical} not supported`);
  return judgeSize(internal, type, context);
}

function judgeSize(internal: string, type: TypeName, context: RuleContext): Refusal | undefined {
  const [size, scale] = (type.typmods ?? []).map(integerOf);
  if (internal === 'bpchar' && (size ?? 0) > longestChar) return tooLong(longestChar, 'char');
  if (internal === 'varchar' && (size ?? 0) > longestVarchar) return tooLong(longestVarchar, 'varchar');
  if (internal !== 'numeric') return undefined;
  if (size === undefined) {
    context.text.insert(endOfTypeName(type, context), plainNumeric);
    return undefined;
  }
  const most = context.profile.accepts('numeric precision up to 1000')
    ? numericPrecision
    : olderNumericPrecision;
  if (size < 1 || size > most)
    return refuse('22023', `NUMERIC precision ${size} must be between 1 and ${most}`);
  if (scale !== undefined && Math.abs(scale) > largestScale)
    return refuse('22023', `NUMERIC scale ${scale} must be between -${largestScale} and ${largestScale}`);
  return undefined;
}

function tooLong(bytes: number, type: string): Refusal {
  return refuse('54000', `Datatype limit greater than ${bytes} bytes not supported for ${type}`);
}

/** Byte offset behind `numeric` or `pg_catalog.numeric`. */
function endOfTypeName(type: TypeName, context: RuleContext): number {
  const tokens = context.text.tokensFrom(type.location ?? 0);
  tokens.next();
  let end = tokens.end;
  while (tokens.next() === Token.symbol && tokens.bytes[tokens.start] === 0x2e) {
    tokens.next();
    end = tokens.end;
  }
  return end;
}

/** Refuses types that can't be in a key. Domains and unknown types are left to the catalog. */
export function judgeKeyType(type: TypeName, context: RuleContext): Refusal | undefined {
  const { internal, canonical, isBuiltIn } = readType(type);
  const stored = isBuiltIn && Object.hasOwn(storedTypes, internal) ? storedTypes[internal] : undefined;
  if (stored === undefined) return undefined;
  const isKey =
    stored.keyBytes !== undefined &&
    (stored.keySince === undefined || context.profile.accepts(stored.keySince));
  return isKey ? undefined : unsupported(`datatype ${canonical} is not supported in a key`);
}

/** Bytes that a column declares for a key; zero where the length is open. */
export function declaredKeyBytes(type: TypeName): number {
  const { internal, isBuiltIn } = readType(type);
  const bytes =
    isBuiltIn && Object.hasOwn(storedTypes, internal) ? storedTypes[internal]?.keyBytes : undefined;
  if (bytes === 'declared') return integerOf(type.typmods?.[0]) ?? 0;
  return bytes ?? 0;
}
