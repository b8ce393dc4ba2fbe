/** Random sequences of messages, sent to the stand-in and to PostgreSQL: the answers are the same. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Script, type Step, step } from '../../pooler/raw/trace.js';
import { type SeededRandom, seededRandom } from '../../support/seeded-random.js';
import { Pair } from './pair.js';

const lives = Number(process.env['HEADGATE_LIVES'] ?? 25);
const firstSeed = Number(process.env['HEADGATE_SEED'] ?? 1);
const stepsEach = 25;

let pair: Pair;

beforeAll(async () => {
  pair = await Pair.start();
  await pair.setUp('CREATE TABLE t (id int PRIMARY KEY, v int CHECK (v < 50))');
});

afterAll(async () => {
  await pair?.stop();
});

const names = ['', '', 'a', 'b'];

function drawText(random: SeededRandom): string {
  const id = random.below(6);
  return random.pick([
    'BEGIN',
    'COMMIT',
    'ROLLBACK',
    'BEGIN READ ONLY',
    `INSERT INTO t VALUES (${id}, ${random.below(60)})`,
    `INSERT INTO t VALUES (${id}, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1 RETURNING *`,
    `UPDATE t SET v = v + 1 WHERE id >= ${id}`,
    `DELETE FROM t WHERE id = ${id} RETURNING v`,
    'SELECT * FROM t ORDER BY id',
    `SELECT v FROM t WHERE id = ${id} FOR UPDATE`,
    'SELECT 1/0',
    'SELEC',
    `SET timezone = 'UTC'`,
    'SHOW timezone',
    'DEALLOCATE ALL',
  ]);
}

/** Messages of one batch. Describe is left out: PostgreSQL tells by the plan whether one is refused in a failed transaction. */
function drawBatch(random: SeededRandom, s: Script): Script {
  const count = 1 + random.below(5);
  for (let n = 0; n < count; n += 1) {
    const name = random.pick(names);
    const portal = random.pick(names);
    const kind = random.below(10);
    if (kind < 5) s.parse(drawText(random), name).bind([], name, portal).execute(portal);
    else if (kind === 5) s.parse(drawText(random), name);
    else if (kind === 6) s.bind([], name, portal).execute(portal, random.below(2));
    else if (kind === 7) s.execute(portal, random.below(3));
    else if (kind === 8) s.closeStatement(name);
    else s.closePortal(portal);
  }
  return s.sync();
}

/** A transaction that has failed has its portals until its end in PostgreSQL, and none here: nothing can be done with them. */
function refused(line: string): string {
  return /^E ERROR (?:34000|25P02) /.test(line) ? 'E refused' : line;
}

function drawStep(random: SeededRandom): Step {
  if (random.chance(0.5)) return step((s) => drawBatch(random, s));
  const texts = Array.from({ length: 1 + random.below(3) }, () =>
    random.chance(0.1) ? random.pick(['', 'SELECT nothing', '/* nothing */']) : drawText(random),
  );
  return step((s) => s.query(texts.join('; ')));
}

test.each(Array.from({ length: lives }, (_, n) => firstSeed + n))(
  'a random life is answered as PostgreSQL answers it (seed %i)',
  async (seed) => {
    const random = seededRandom(seed);
    const steps = [
      step((s) => s.query('DELETE FROM t')),
      ...Array.from({ length: stepsEach }, () => drawStep(random)),
    ];
    const ends = [step((s) => s.query('ROLLBACK')), step((s) => s.query('SELECT * FROM t ORDER BY id'))];
    const { plain, local } = await pair.play([...steps, ...ends]);
    expect(local.map(refused)).toEqual(plain.map(refused));
    expect(pair.world.troubles).toEqual([]);
  },
);
