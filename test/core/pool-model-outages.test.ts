// Another part of pool-model.test.ts: a server that is down or does not answer. And that the lives reach everything.
import { describe, expect, test } from 'vitest';
import { discardReasons, refillCauses } from '../../src/core/reasons.js';
import { type WeatherName, weathers } from './model/scenario.js';
import { describeFinding, plan, search } from './model/search.js';

const { first, count } = plan(1_600);

describe(`Every law holds after every step of ${count} random lives (HEADGATE_SEED, HEADGATE_SEQUENCES)`, () => {
  test.each<WeatherName>(['hanging', 'down'])(
    'in %s weather',
    (weather) => {
      const finding = search(first, count, weather, 'plain');
      expect(finding === undefined ? 'all well' : describeFinding(finding, weather)).toBe('all well');
    },
    180_000,
  );
});

const everything = [
  ...discardReasons.map((reason) => `discarded: ${reason}`),
  ...refillCauses.map((cause) => `refill failed: ${cause}`),
  ...['take', 'taken', 'ask', 'askAsUsual', 'abort', 'withdraw'],
  ...['release', 'releaseWithError', 'releaseTwice', 'releaseStale'],
  ...['resize', 'resizeToNonsense', 'pause', 'resume', 'ready', 'drain', 'breakOne'],
  ...['wait', 'waitLong', 'waitForScans', 'stall', 'creep'],
  ...['answerDial', 'failDial', 'answerClose', 'answerCheck'],
  ...['loseLeases', 'recallLeases', 'leasesAvailable', 'leasesRefused'],
  ...['dial succeeds', 'dial succeeds at once', 'dial fails', 'dial fails at once', 'dial hangs'],
  ...['dial fails: connection_open', 'dial fails: rate_limit', 'dial fails: token_provider'],
  ...['dial fails for now', 'abandoned dial goes on', 'close hangs'],
  ...['check passes', 'check fails', 'check hangs'],
  ...['limiter throws', 'limiter stalls', 'lease later', 'lease refused'],
  ...['lease after a while', 'no lease after a while'],
  ...['breaks while idle', 'breaks while in_use', 'breaks while checking', 'breaks while closing'],
  ...['caller granted: granted', 'caller failed: AcquireTimeoutError', 'caller failed: ReservoirEmptyError'],
  ...['caller failed: ConnectFailedError', 'caller failed: PoolClosedError'],
  ...['caller failed: DialTimeoutError', 'caller failed: Error'],
  ...['ready() reached', 'ready() missed', 'second release is refused', 'acts from inside an answer'],
  ...['reservoir started', 'reservoir complete', 'reservoir timeout'],
  ...['warmup started', 'warmup complete', 'warmup given_up', 'topped up'],
];

test('The random lives reach every operation, every fault, every outcome, every reason and every cause', () => {
  const seen = new Set<string>();
  for (const weather of Object.keys(weathers) as WeatherName[]) {
    search(1, 150, weather, 'plain', seen);
    search(1, 200, weather, 'source', seen);
  }
  expect(everything.filter((what) => !seen.has(what))).toEqual([]);
});
