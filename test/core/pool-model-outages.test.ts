// The other half of pool-model.test.ts: a server that is down or does not answer. And that the lives reach everything.
import { describe, expect, it } from 'vitest';
import { discardReasons } from '../../src/core/reasons.js';
import { type WeatherName, weathers } from './model/scenario.js';
import { describeFinding, plan, search } from './model/search.js';

const { first, count } = plan(5_000);

describe(`Every law holds after every step of ${count} random lives (HEADGATE_SEED, HEADGATE_SEQUENCES)`, () => {
  it.each<WeatherName>(['hanging', 'down'])(
    'in %s weather',
    (weather) => {
      const finding = search(first, count, weather);
      expect(finding === undefined ? 'all well' : describeFinding(finding, weather)).toBe('all well');
    },
    180_000,
  );
});

describe('The random lives', () => {
  it('reach every operation, every fault, every outcome and every reason', () => {
    const seen = new Set<string>();
    for (const weather of Object.keys(weathers) as WeatherName[]) search(1, 400, weather, seen);
    const wanted = [
      ...discardReasons.map((reason) => `discarded: ${reason}`),
      ...[
        'take',
        'taken',
        'ask',
        'abort',
        'withdraw',
        'release',
        'releaseWithError',
        'releaseTwice',
        'releaseStale',
      ],
      ...['resize', 'resizeToNonsense', 'pause', 'resume', 'ready', 'drain', 'breakOne'],
      ...['wait', 'waitLong', 'stall', 'creep', 'answerDial', 'failDial', 'answerClose', 'answerCheck'],
      ...['dial succeeds', 'dial succeeds at once', 'dial fails', 'dial fails at once', 'dial hangs'],
      ...['abandoned dial goes on', 'close hangs', 'check passes', 'check fails', 'check hangs'],
      ...['breaks while idle', 'breaks while lent', 'breaks while checking', 'breaks while closing'],
      ...[
        'caller granted: granted',
        'caller failed: AcquireTimeoutError',
        'caller failed: ConnectFailedError',
      ],
      ...['caller failed: PoolClosedError', 'caller failed: DialTimeoutError', 'caller failed: Error'],
      ...['ready() reached', 'ready() missed', 'second release is refused', 'acts from inside an answer'],
    ];
    expect(wanted.filter((what) => !seen.has(what))).toEqual([]);
  });
});
