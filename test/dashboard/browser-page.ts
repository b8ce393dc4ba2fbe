// The page of a pooler, open in a browser: logged in, and without any error in its console.
import type { Browser, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { type ConfigTree, startTestPooler, type TestPooler } from '../support/pooler.js';
import type { TestDatabase } from '../support/postgres.js';

export const operator = 'the-operator-password';
export const viewer = 'the-viewer-password';
/** Of `observability`. */
export const withPage = { metricsListen: '127.0.0.1:0', pagePassword: operator, pageViewerPassword: viewer };
/** The machine may be busy. */
export const soon = { timeout: 30_000, interval: 50 };

export interface PoolerWithPage extends TestPooler {
  readonly address: string;
}

/** A pooler of four server connections, with its page. */
export async function startWithPage(db: TestDatabase, tree: ConfigTree = {}): Promise<PoolerWithPage> {
  const pooler = await startTestPooler(db, {
    limits: { maxServerConnections: 4 },
    ...tree,
    admin: { adminUsers: [db.user] },
    observability: withPage,
  });
  return { ...pooler, address: `http://127.0.0.1:${pooler.pooler.metricsPort}/` };
}

export interface Look {
  readonly scheme?: 'light' | 'dark';
  readonly width?: number;
  /** The pooler is to go away, which the browser notes as an error. */
  readonly isLosable?: boolean;
}

export async function openPage(
  browser: Browser,
  address: string,
  secret: string,
  { scheme = 'light', width = 1440, isLosable = false }: Look = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() !== 'error' || / 40[139] /.test(message.text())) return;
    if (!isLosable || !message.text().includes('net::ERR_')) problems.push(message.text());
  });
  onTestFinished(() => expect(problems).toEqual([]));
  await page.goto(address);
  await page.getByLabel('Password or token').fill(secret);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('region', { name: 'What binds now' }).waitFor();
  return page;
}

/** Rows of a command at the pooler's console. */
export async function askConsole(pooler: TestPooler, command: string): Promise<Record<string, unknown>[]> {
  const admin = await pooler.connect({ database: 'headgate' });
  const { rows } = await admin.query(command);
  await admin.end();
  return rows;
}
