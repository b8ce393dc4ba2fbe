// How long failures are held up, in virtual time.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FailedLogins } from '../../../src/pooler/auth/failed-logins.js';
import { VirtualTime } from '../../support/virtual-time.js';

function world(options = {}) {
  const time = new VirtualTime();
  const failures = new FailedLogins(time, options);
  const failed = (address: string) => {
    time.newTurn();
    return failures.failed(address);
  };
  return {
    time,
    failures,
    failed,
    several: (count: number, address: string) => Array.from({ length: count }, () => failed(address)),
  };
}

describe('failed logins', () => {
  test('are answered at once for the first few, and then ever later', () => {
    const { several } = world();
    expect(several(10, '10.0.0.1')).toEqual([0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  });

  test('wait as long as other options say from then on, and are not forgotten for that', () => {
    const { failures, several } = world();
    several(4, '10.0.0.1');
    failures.change({ free: 2, firstDelayMs: 10, longestDelayMs: 50 });
    expect(several(3, '10.0.0.1')).toEqual([40, 50, 50]);
    failures.change({ firstDelayMs: 0 });
    expect(several(2, '10.0.0.1')).toEqual([0, 0]);
  });

  test('of one address do not hold up another', () => {
    const { several } = world();
    several(10, '10.0.0.1');
    expect(several(3, '10.0.0.2')).toEqual([0, 0, 0]);
  });

  test('are forgotten after two minutes without one', () => {
    const { time, several } = world();
    several(10, '10.0.0.1');
    time.time += 119_999;
    expect(several(1, '10.0.0.1')).toEqual([10_000]);
    time.time += 120_000;
    expect(several(1, '10.0.0.1')).toEqual([0]);
  });

  test('of a whole IPv6 network count as one, since one client has it all', () => {
    const { several, failed } = world();
    several(3, '2001:db8:1:2::1');
    expect(failed('2001:db8:1:2:ffff::9')).toBe(250);
    expect(failed('2001:db8:1:3::1')).toBe(0);
  });

  test('of an IPv4 address count the same in the clothes of IPv6', () => {
    const { several, failed } = world();
    several(3, '10.0.0.1');
    expect(failed('::ffff:10.0.0.1')).toBe(250);
  });

  test('through a Unix socket are never held up', () => {
    expect(world().several(20, '')).toEqual(new Array(20).fill(0));
  });

  test('of ever new addresses take a bounded amount of memory', () => {
    fc.assert(
      fc.property(fc.array(fc.ipV4(), { maxLength: 50 }), (addresses) => {
        const { failures, failed } = world({ maxAddresses: 10 });
        for (const address of addresses) failed(address);
        expect(failures.size).toBeLessThanOrEqual(10);
      }),
    );
  });

  test('that go on for days are held up no longer than the longest time', () => {
    const { several } = world({ free: 0, firstDelayMs: 1, longestDelayMs: 5_000 });
    expect(Math.max(...several(2_000, '10.0.0.1'))).toBe(5_000);
  });
});
