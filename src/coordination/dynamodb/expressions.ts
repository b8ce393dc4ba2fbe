/** A change in DynamoDB's own words. Every attribute has a placeholder, since many names are reserved. */
import type { Change, Item, Test, Value } from './table.js';

/** An attribute as it is sent: `{ N: '5' }`, `{ S: 'five' }`. */
export type Attribute = { readonly N: string } | { readonly S: string };
export type Attributes = Record<string, Attribute>;

export interface Expressions {
  readonly ConditionExpression?: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
}

export function expressionsOf({ when, set = {}, add = {}, isRemoval }: Change): Expressions {
  const words = new Placeholders();
  const condition = when
    ?.map((tests) => tests.map((test) => testText(test, words)).join(' AND '))
    .join(' OR ');
  const sets = Object.entries(set).map(([name, value]) => `${words.name(name)} = ${words.value(value)}`);
  const adds = Object.entries(add).map(([name, by]) => `${words.name(name)} ${words.value(by)}`);
  const clauses = [
    sets.length > 0 ? `SET ${sets.join(', ')}` : '',
    adds.length > 0 ? `ADD ${adds.join(', ')}` : '',
  ].filter((clause) => clause !== '');
  return {
    ...(condition === undefined ? {} : { ConditionExpression: condition }),
    ...(isRemoval || clauses.length === 0 ? {} : { UpdateExpression: clauses.join(' ') }),
    ...words.all(),
  };
}

function testText(test: Test, words: Placeholders): string {
  const name = words.name(test.attribute);
  return test.is === 'missing'
    ? `attribute_not_exists(${name})`
    : `${name} ${test.is} ${words.value(test.than)}`;
}

class Placeholders {
  readonly #names = new Map<string, string>();
  readonly #values: Attributes = {};
  #count = 0;

  name(attribute: string): string {
    const known = this.#names.get(attribute) ?? `#a${this.#names.size}`;
    this.#names.set(attribute, known);
    return known;
  }

  value(value: Value): string {
    const placeholder = `:v${this.#count++}`;
    this.#values[placeholder] = attributeOf(value);
    return placeholder;
  }

  all(): Pick<Expressions, 'ExpressionAttributeNames' | 'ExpressionAttributeValues'> {
    const names = Object.fromEntries(
      [...this.#names].map(([attribute, placeholder]) => [placeholder, attribute]),
    );
    return {
      ...(this.#names.size === 0 ? {} : { ExpressionAttributeNames: names }),
      ...(this.#count === 0 ? {} : { ExpressionAttributeValues: this.#values }),
    };
  }
}

function attributeOf(value: Value): Attribute {
  return typeof value === 'number' ? { N: String(value) } : { S: value };
}

/** Attributes that are neither numbers nor texts are left out. */
export function itemOf(attributes: Readonly<Record<string, unknown>> | undefined): Item | undefined {
  if (attributes === undefined) return undefined;
  const item: Record<string, Value> = {};
  for (const [name, attribute] of Object.entries(attributes)) {
    const { N: number, S: text } = attribute as { N?: unknown; S?: unknown };
    if (typeof number === 'string') item[name] = Number(number);
    else if (typeof text === 'string') item[name] = text;
  }
  return item;
}
