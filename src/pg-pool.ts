/** `headgate/pg-pool`: `require()` returns the class itself, as the pg-pool package does. */
export { PgPool as default, PgPool as Pool, PgPool as 'module.exports' } from './pg/pg-pool.js';
