// Settings that the pooler keeps behave as PostgreSQL's own: the same statements, there and here.
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { KeptSettings } from '../../../src/pooler/settings/kept-settings.js';
import { refusedSettings } from '../../../src/pooler/settings/refused-settings.js';

const connectionString = inject('sharedPostgresUrl');

const values = [
  '0',
  '1',
  '5000',
  '5s',
  '90s',
  '1min',
  '60 min',
  '1.5s',
  '0.5',
  '1.5',
  '2.5',
  '1h',
  '1d',
  '25h',
  ' 7 ',
  '2147483647',
  '1e3',
];
const bad = ['-1', 'abc', '5 parsecs', '2147483648', '5S', '', '1 h 2'];

test('times are read, rounded, shown and refused as PostgreSQL does it', async () => {
  const client = new pg.Client(connectionString);
  await client.connect();
  try {
    const setting = refusedSettings.get('statement_timeout');
    for (const value of [...values, ...bad]) {
      const theirs = await client
        .query("SELECT set_config('statement_timeout', $1, true)", [value])
        .then(({ rows }) => (rows[0] as { set_config: string }).set_config)
        .catch(({ code, message, hint }) => ({ code, message, hint }));
      const ours = setting?.read(value);
      const told =
        typeof ours === 'object' ? { code: ours.code, message: ours.message, hint: ours.hint } : ours;
      expect({ value, told }).toEqual({ value, told: theirs });
    }
  } finally {
    await client.end();
  }
});

/** Statements of a client, and those for the settings that are kept. */
const steps = [
  ['SET statement_timeout = 11000', (kept: KeptSettings) => kept.set('statement_timeout', '11s', false)],
  ['SET statement_timeout = 12000', (kept: KeptSettings) => kept.set('statement_timeout', '12s', false)],
  ['SET LOCAL statement_timeout = 13000', (kept: KeptSettings) => kept.set('statement_timeout', '13s', true)],
  [
    'SET LOCAL statement_timeout TO DEFAULT',
    (kept: KeptSettings) => kept.set('statement_timeout', undefined, true),
  ],
  ['RESET statement_timeout', (kept: KeptSettings) => kept.set('statement_timeout', undefined, false)],
  ['RESET ALL', (kept: KeptSettings) => kept.resetAll()],
] as const;

test('SET, SET LOCAL, RESET, COMMIT and ROLLBACK in every order of four leave what PostgreSQL has', async () => {
  const client = new pg.Client({ connectionString, options: '-c statement_timeout=9s' });
  await client.connect();
  try {
    for (let order = 0; order < steps.length ** 3 * 2; order++) {
      const kept = new KeptSettings(new Map([['statement_timeout', '9s']]));
      const isCommitted = order % 2 === 0;
      const chosen = [0, 1, 2].map(
        (place) => steps[Math.floor(order / 2 / steps.length ** place) % steps.length],
      );
      await client.query('SET statement_timeout = 17000');
      kept.set('statement_timeout', '17s', false);
      kept.commit();
      // PostgreSQL's RESET ALL passes over what SET LOCAL has brought back to its default, also for the session.
      if (chosen.includes(steps[3]) && chosen.includes(steps[5])) continue;
      const texts = ['BEGIN'];
      for (const [text, act] of chosen as (typeof steps)[number][]) {
        texts.push(text);
        act(kept);
      }
      await client.query(texts.join('; '));
      const inside = await client.query('SHOW statement_timeout');
      expect({ texts, value: kept.get('statement_timeout') }).toEqual({
        texts,
        value: inside.rows[0].statement_timeout,
      });
      await client.query(isCommitted ? 'COMMIT' : 'ROLLBACK');
      if (isCommitted) kept.commit();
      else kept.rollback();
      const after = await client.query('SHOW statement_timeout');
      expect({ texts, isCommitted, value: kept.get('statement_timeout') }).toEqual({
        texts,
        isCommitted,
        value: after.rows[0].statement_timeout,
      });
    }
  } finally {
    await client.end();
  }
});
