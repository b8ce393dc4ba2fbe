// When a statement or an idle transaction has taken too long, in virtual time.
import { expect, test } from 'vitest';
import { SessionTimeouts } from '../../src/dsql/session-timeouts.js';
import { VirtualAlarm, VirtualTime } from '../support/virtual-time.js';

const statement = 1_000;
const idleInTransaction = 300;

/** A session that is told what happens, and the code of the error that ended it. */
function session(limits = { statement, idleInTransaction }) {
  const time = new VirtualTime();
  let alarm: VirtualAlarm | undefined;
  let ended: string | undefined;
  const timeouts = new SessionTimeouts(
    limits,
    time,
    (ring) => {
      alarm = new VirtualAlarm(ring, time);
      return alarm;
    },
    (error) => {
      ended = (error as Error & { code: string }).code;
    },
  );
  return {
    timeouts,
    /** Lets time pass; answers with what has ended the session by then. */
    endedAfter(milliseconds: number): string | undefined {
      time.time += milliseconds;
      if (alarm !== undefined && alarm.at <= time.time) alarm.ring();
      return ended;
    },
    get isTimed() {
      return alarm?.isArmed;
    },
  };
}

test('a statement may take as long as its limit, and no longer', () => {
  const { timeouts, endedAfter } = session();
  timeouts.sent(true);
  expect(endedAfter(statement - 1)).toBeUndefined();
  expect(endedAfter(1)).toBe('HG_DSQL_STATEMENT_TIMEOUT');
});

test('a statement is not timed any more when it is done', () => {
  const it = session();
  it.timeouts.sent(true);
  it.timeouts.ready('I');
  expect(it.isTimed).toBe(false);
});

test('a statement of several messages has one time, from the first of them', () => {
  const { timeouts, endedAfter } = session();
  timeouts.sent(false);
  endedAfter(statement - 1);
  timeouts.sent(false);
  timeouts.sent(true);
  expect(endedAfter(1)).toBe('HG_DSQL_STATEMENT_TIMEOUT');
});

test('a statement sent before the previous one was done has a time of its own, from then', () => {
  const { timeouts, endedAfter } = session();
  timeouts.sent(true);
  timeouts.sent(true);
  endedAfter(statement - 1);
  timeouts.ready('I');
  expect(endedAfter(statement - 1)).toBeUndefined();
  expect(endedAfter(1)).toBe('HG_DSQL_STATEMENT_TIMEOUT');
});

test.each(['T', 'E'])(
  'a transaction may be idle as long as its limit, and no longer (status %s)',
  (status) => {
    const { timeouts, endedAfter } = session();
    timeouts.sent(true);
    timeouts.ready(status);
    expect(endedAfter(idleInTransaction - 1)).toBeUndefined();
    expect(endedAfter(1)).toBe('HG_DSQL_IDLE_IN_TRANSACTION');
  },
);

test('a transaction is not idle while a statement runs', () => {
  const { timeouts, endedAfter } = session();
  timeouts.sent(true);
  timeouts.ready('T');
  timeouts.sent(true);
  expect(endedAfter(idleInTransaction)).toBeUndefined();
});

test('a transaction is over when the server says so', () => {
  const it = session();
  it.timeouts.sent(true);
  it.timeouts.ready('T');
  it.timeouts.sent(true);
  it.timeouts.ready('I');
  expect(it.isTimed).toBe(false);
});

test('a limit that is off leaves no timer, and neither does a closed connection', () => {
  const off = Number.POSITIVE_INFINITY;
  const unlimited = session({ statement: off, idleInTransaction: off });
  unlimited.timeouts.sent(true);
  expect(unlimited.isTimed).toBe(false);
  unlimited.timeouts.ready('T');
  expect(unlimited.isTimed).toBe(false);
  const closed = session();
  closed.timeouts.sent(true);
  closed.timeouts.closed();
  expect(closed.isTimed).toBe(false);
});
