// Which texts of a pool's clients are known, so that they need not be read again.
import { expect, test } from 'vitest';
import { type PlainText, PlainTexts } from '../../../src/pooler/servers/plain-texts.js';

function find(texts: PlainTexts, text: string): PlainText | undefined {
  const bytes = Buffer.from(text);
  return texts.find(bytes, 0, bytes.length);
}

/** True if the text was known. */
function meet(texts: PlainTexts, text: string): boolean {
  const bytes = Buffer.from(text);
  if (texts.find(bytes, 0, bytes.length) !== undefined) return true;
  texts.note(bytes, 0, bytes.length);
  return false;
}

test('a text is known once it was noted, whatever its values', () => {
  const texts = new PlainTexts();
  meet(texts, "select a from t where b = 17 and c = 'x'");
  const known = find(texts, "select a from t where b = 4 and c = 'another'");
  expect(known).toBeDefined();
  expect(find(texts, 'select a from t where b = 4')).toBeUndefined();
  expect(find(texts, "select a from t where b = 1 and c = ''")).toBe(known);
});

test('all statements of a program with 100 of them are known', () => {
  const texts = new PlainTexts();
  const statements = Array.from(
    { length: 100 },
    (_, number) => `select column_${number} from t where id = 1`,
  );
  for (const statement of statements) meet(texts, statement);
  expect(statements.filter((statement) => meet(texts, statement)).length).toBeGreaterThan(95);
});

test('texts that are sent often stay known among thousands that come once', () => {
  const texts = new PlainTexts();
  const frequent = ['select a from t', 'select b from t', 'select c from t'];
  let known = 0;
  for (let other = 0; other < 5_000; other++) {
    meet(texts, `select other_${other} from t`);
    for (const statement of frequent) if (meet(texts, statement)) known++;
  }
  expect(known).toBeGreaterThan(0.95 * 3 * 5_000);
});

test('long texts do not take memory without end', () => {
  const texts = new PlainTexts();
  const statements = Array.from(
    { length: 2_000 },
    (_, number) => `select ${'a'.repeat(900)}_${number} from t where id = 1`,
  );
  for (const statement of statements) meet(texts, statement);
  const known = statements.filter((statement) => find(texts, statement) !== undefined);
  expect(known.length).toBeLessThanOrEqual(65_536 / 900);
  // A text that is sent now is known soon.
  for (let time = 0; time < 40; time++) meet(texts, 'select recent from t');
  expect(meet(texts, 'select recent from t')).toBe(true);
});
