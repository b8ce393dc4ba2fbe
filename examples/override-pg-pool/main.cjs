// A program that only knows pg, whose pool is Headgate's all the same.
const { Pool } = require('pg');

async function main() {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 3 });

  const { rows } = await pool.query('select $1::text as greeting', ['hello']);
  console.log(rows[0].greeting);

  // pg's own pool has no stats().
  const { limit, live, idle } = pool.stats();
  console.log(`${live} of at most ${limit} connections, ${idle} idle`);

  await pool.end();
  console.log(`closed, ${pool.stats().live} connections left`);
}

main();
