// The first steps: what pg.Pool does, with a limit that the server never sees exceeded.
import { Pool } from 'headgate';

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  max: 5,
  application_name: 'headgate-basic',
});
pool.on('error', (error) => console.error('an idle connection was lost:', error.message));

// One query: the pool picks a connection and takes it back.
const { rows } = await pool.query('select $1::text as greeting', ['hello']);
console.log(rows[0].greeting);

// Several statements on one connection. Whatever happens inside, it goes back to the pool.
const client = await pool.connect();
try {
  await client.query('begin');
  await client.query('create temp table note (text text) on commit drop');
  await client.query("insert into note values ('kept until commit')");
  const notes = await client.query('select text from note');
  console.log(notes.rows[0].text);
  await client.query('commit');
} catch (error) {
  await client.query('rollback');
  throw error;
} finally {
  client.release();
}

// A hundred queries at once wait their turn for five connections. The server is the witness.
const seen = await Promise.all(
  Array.from({ length: 100 }, async () => {
    const answer = await pool.query(
      `select count(*)::int as connections from pg_stat_activity where application_name = 'headgate-basic'`,
    );
    return answer.rows[0].connections;
  }),
);
console.log(`100 queries at once, at most ${Math.max(...seen)} connections`);

// Resolves when every query has been answered and every socket is closed.
await pool.end();
console.log('closed');
