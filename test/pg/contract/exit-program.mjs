// Run by exit.test.ts as a process of its own: uses a pool, says what it sees, and then has nothing more to do.
const [, , implementation, connection, options] = process.argv;
const { Pool } = implementation === 'headgate Pool' ? await import('headgate') : (await import('pg')).default;

const pool = new Pool({ ...JSON.parse(connection), ...JSON.parse(options) });
pool.on('remove', () => console.log('removed'));

await pool.query('select 1');
console.log('first');
// Lets the client be idle for a while: one that no longer keeps the process alive must do so again when used.
await new Promise((resolve) => setTimeout(resolve, 20));
await pool.query('select pg_sleep(0.1)');
console.log('second');
