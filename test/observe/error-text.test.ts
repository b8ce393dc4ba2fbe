/** Errors in the log: what happened, and no secret. */
import { expect, test } from 'vitest';
import { HeadgateError } from '../../src/engine.js';
import { errorFields } from '../../src/observe/error-text.js';

test('the text of an error has the message and the code', () => {
  expect(errorFields(new HeadgateError('HG_X', 'it broke'))).toEqual({ error: 'it broke', code: 'HG_X' });
  expect(errorFields(new TypeError('it broke'))).toEqual({ error: 'it broke' });
});

test('the text of an error has nothing of the other properties, nor of the cause', () => {
  const cause = Object.assign(new Error('inner'), { token: 'hunter2' });
  const error = Object.assign(new Error('outer', { cause }), {
    password: 'hunter2',
    config: { password: 'hunter2' },
    code: { secret: 'hunter2' },
  });
  expect(errorFields(error)).toEqual({ error: 'outer' });
});

test.each([
  ['bad url postgres://me:hunter2@db.example/x', 'bad url postgres://me:***@db.example/x'],
  ['bad url postgres://me:hun@ter2@db.example/x', 'bad url postgres://me:***@db.example/x'],
  ['bad url postgres://:hunter2@db.example', 'bad url postgres://:***@db.example'],
  ["host=db password='hunter 2' user=me", 'host=db password=*** user=me'],
  ['host=db PASSWORD=hunter2 user=me', 'host=db PASSWORD=*** user=me'],
  ['db/?Action=DbConnect&X-Amz-Signature=hunter2&x=1', 'db/?Action=DbConnect&X-Amz-Signature=***&x=1'],
  ['connect ECONNREFUSED 127.0.0.1:5432', 'connect ECONNREFUSED 127.0.0.1:5432'],
  [
    'see https://example.com:443/a for user@example.com',
    'see https://example.com:443/a for user@example.com',
  ],
])('the text of an error has a message without its secrets: %s', (message, shown) => {
  expect(errorFields(new Error(message))).toEqual({ error: shown });
});

test('the text of an error has the code for a message where Node leaves that empty', () => {
  const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
  expect(errorFields(refused)).toEqual({ error: 'ECONNREFUSED', code: 'ECONNREFUSED' });
  expect(errorFields(new AggregateError([]))).toEqual({ error: 'AggregateError' });
});

test('the text of an error is not longer than a log can bear', () => {
  expect(errorFields(new Error('x'.repeat(1_000_000))).error.length).toBe(1_000);
});
