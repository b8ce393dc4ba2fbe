// @ts-check
// The PostgreSQL of these shows: users by the hundred, a database that they may enter without a pooler and a password, and a
// look from outside at how many connections there are.
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../scripts/lib/embedded-postgres.mjs';

/** @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres */

export const directDatabase = 'direct';
const maxConnections = 300;
const lookMs = 100;
const emptyMs = 10_000;
const countConnections = `select count(*)::int as connections from pg_stat_activity
  where backend_type = 'client backend' and pid <> pg_backend_pid()`;

export class Server {
  /** Users beside the database's own; all with its password. */
  users;
  database;
  #admin;
  #most = 0;
  #looks;
  #isLooking = false;

  /**
   * @param {EmbeddedPostgres} database
   * @param {pg.Client} admin
   * @param {string[]} users
   */
  constructor(database, admin, users) {
    this.database = database;
    this.users = users;
    this.#admin = admin;
    this.#looks = setInterval(() => this.#look(), lookMs);
  }

  /** @param {string[]} users */
  static async start(users) {
    const database = await startEmbeddedPostgres({ maxConnections, settings: { shared_buffers: '256MB' } });
    try {
      const admin = new pg.Client({ connectionString: database.url });
      // Lost where the server is stopped after a failure, which is reported.
      admin.on('error', () => {});
      await admin.connect();
      for (const user of users)
        await admin.query(`create role ${user} login password '${database.password}'`);
      await admin.query(`create database ${directDatabase}`);
      const { rows } = await admin.query('show hba_file');
      const hbaFile = rows[0].hba_file;
      const rules = readFileSync(hbaFile, 'utf8');
      writeFileSync(hbaFile, `host ${directDatabase} all 127.0.0.1/32 trust\n${rules}`);
      await admin.query('select pg_reload_conf()');
      return new Server(database, admin, users);
    } catch (error) {
      await database.stop();
      throw error;
    }
  }

  /** The most connections that were seen since the last call. */
  takeMost() {
    const most = this.#most;
    this.#most = 0;
    return most;
  }

  /** Returns when those who were here have left. */
  async empty() {
    const deadline = Date.now() + emptyMs;
    while ((await this.#count()) > 0) {
      if (Date.now() > deadline) throw new Error('Connections of the show before this one are still there.');
      await sleep(20);
    }
    this.#most = 0;
  }

  async stop() {
    clearInterval(this.#looks);
    await this.#admin.end();
    await this.database.stop();
  }

  async #look() {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.#most = Math.max(this.#most, await this.#count());
    } catch {
      // The server was stopped meanwhile.
    }
    this.#isLooking = false;
  }

  async #count() {
    const { rows } = await this.#admin.query(countConnections);
    return /** @type {number} */ (rows[0]?.connections ?? 0);
  }
}
