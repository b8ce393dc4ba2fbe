// How often a worker looks whether there is something to tell the supervisor.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FromWorker } from '../../../src/pooler/messages/messages.js';
import { SupervisorBudgets } from '../../../src/pooler/worker/supervisor-budgets.js';
import { FiguredEngine } from './figured-engine.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function pool() {
  const told: FromWorker[] = [];
  const budgets = new SupervisorBudgets((message) => told.push(message));
  const leases = budgets.leasesFor({ user: 'app', database: 'app', server: 'db:5432' });
  const engine = new FiguredEngine(leases);
  const looksIn = (ms: number): number => {
    const before = engine.looks;
    vi.advanceTimersByTime(ms);
    return engine.looks - before;
  };
  /** Asks, and has it. */
  const take = (): void => {
    engine.demand = engine.held + 1;
    engine.ask();
    budgets.granted(leases.number);
  };
  return { told, budgets, engine, looksIn, take };
}

test('a pool without connections is not looked at', () => {
  const { looksIn } = pool();
  expect(looksIn(10_000)).toBe(0);
});

test('one that is busy is looked at often, and one that is not seldom', () => {
  const { engine, looksIn, take, told } = pool();
  take();
  expect(looksIn(1_000)).toBe(40);
  engine.demand = 0;
  vi.advanceTimersByTime(25);
  expect(told.at(-1)).toMatchObject({ kind: 'reports', reports: [{ demand: 0 }] });
  expect(looksIn(1_000)).toBe(10);
  engine.demand = 1;
  vi.advanceTimersByTime(100);
  expect(told.at(-1)).toMatchObject({ kind: 'reports', reports: [{ demand: 1 }] });
  expect(looksIn(1_000)).toBe(40);
});

test('a question ends the rest', () => {
  const { engine, looksIn, take } = pool();
  take();
  engine.demand = 0;
  vi.advanceTimersByTime(1_010);
  take();
  expect(looksIn(100)).toBe(4);
});

test('nothing is looked at any more when it has stopped, or has given everything back', () => {
  const { budgets, engine, looksIn, take } = pool();
  take();
  engine.giveBack();
  vi.advanceTimersByTime(25);
  expect(looksIn(10_000)).toBe(0);
  take();
  budgets.stop();
  expect(looksIn(10_000)).toBe(0);
});
