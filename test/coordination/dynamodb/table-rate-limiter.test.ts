// What instances that share a rate can rely on, whatever their clocks say and whatever happens to their calls.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rateKey } from '../../../src/coordination/dynamodb/rate-items.js';
import {
  leastBurst,
  type RateSettings,
  TableRateLimiter,
} from '../../../src/coordination/dynamodb/table-rate-limiter.js';
import type { AlarmFactory } from '../../../src/kernel/clock.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { MemoryTable } from '../../../src/simulator/leases/dynamodb/memory-table.js';
import {
  noTableFaults,
  RemoteTable,
  type TableFaults,
} from '../../../src/simulator/leases/dynamodb/remote-table.js';
import { ServiceAlarm, ServiceClock } from '../../../src/simulator/time/service-clock.js';
import { Timeline } from '../../../src/simulator/time/timeline.js';

const key = rateKey('cluster.example');

class Scene {
  readonly timeline = new Timeline();
  readonly table = new MemoryTable();
  readonly random: SeededRandom;
  readonly settings: RateSettings;
  readonly dialers: Dialer[] = [];
  /** When each permit was used, by the true time. */
  readonly uses: number[] = [];
  faults: TableFaults = noTableFaults;
  isTableDown = false;
  /** Of those that are started from now on. */
  latencyMs = 10;

  constructor(seed: number, settings: Partial<RateSettings> = {}) {
    this.random = new SeededRandom(seed);
    this.settings = {
      key,
      rate: 100,
      burst: 200,
      batch: 10,
      maxWaitMs: 30_000,
      localShare: undefined,
      ...settings,
    };
  }

  /** Clocks are hours apart, and run at slightly different speeds. */
  start(): Dialer {
    const dialer = new Dialer(this, (this.random.next() - 0.5) * 1e7, (this.random.next() - 0.5) * 2e-4);
    this.dialers.push(dialer);
    return dialer;
  }

  run(ms: number): void {
    this.timeline.runUntil(this.timeline.now + ms);
  }

  /** How many more were used than the bucket of the server would have let through, at the worst. */
  get excess(): number {
    const { rate, burst } = this.settings;
    let level = burst;
    let worst = 0;
    let last = 0;
    for (const at of this.uses) {
      level = Math.min(burst, level + ((at - last) * rate) / 1_000) - 1;
      last = at;
      worst = Math.min(worst, level);
    }
    return Math.abs(worst);
  }
}

/** Opens connections as fast as it may, while it wants any. */
class Dialer {
  readonly limiter: TableRateLimiter;
  readonly #scene: Scene;
  readonly #clock: ServiceClock;
  wants = 0;
  readonly used: number[] = [];
  #isWaiting = false;

  constructor(scene: Scene, skewMs: number, drift: number) {
    const { timeline, random, table, latencyMs } = scene;
    this.#scene = scene;
    this.#clock = new ServiceClock(timeline, skewMs, drift);
    const alarm: AlarmFactory = (ring) => new ServiceAlarm(timeline, this.#clock, ring, (action) => action());
    const remote = new RemoteTable(table, {
      now: () => timeline.now,
      later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
      halfWayMs: () => (latencyMs / 2) * (0.5 + random.next()),
      isCutOff: () => scene.isTableDown,
      faults: () => scene.faults,
      random,
    });
    this.limiter = new TableRateLimiter(remote, scene.settings, {
      clock: this.#clock,
      alarm,
      random,
      timeoutMs: 1_000,
    });
  }

  want(count: number): void {
    this.wants = count;
    this.pump();
  }

  pump(): void {
    const { timeline, uses } = this.#scene;
    while (this.wants > 0 && !this.#isWaiting) {
      let waitMs: number;
      try {
        waitMs = this.limiter.take(this.#clock.now());
      } catch {
        waitMs = 250;
      }
      if (waitMs === 0) {
        this.wants--;
        this.used.push(timeline.now);
        uses.push(timeline.now);
        continue;
      }
      this.#isWaiting = true;
      timeline.plan(timeline.now + Math.max(1, Math.ceil(waitMs)), () => {
        this.#isWaiting = false;
        this.pump();
      });
    }
  }
}

test('a rate limit in a table gives a lone instance the burst at once, and then the full rate', () => {
  const scene = new Scene(1);
  const one = scene.start();
  scene.run(20_000);
  one.want(Number.POSITIVE_INFINITY);
  scene.run(1_500);
  // Of the burst, so much is kept back as may be used late, and so much as the clock may at first be wrong by.
  expect(one.used.length).toBeGreaterThan(200 - 50 - 100 + 100);
  const before = one.used.length;
  scene.run(60_000);
  expect(one.used.length - before).toBeGreaterThan(6_000 * 0.99);
  expect(scene.excess).toBe(0);
});

test('a rate limit in a table is shared equally by the instances that want it, and none waits for longer than twice its share', () => {
  const scene = new Scene(2);
  for (let n = 0; n < 20; n++) scene.start().want(Number.POSITIVE_INFINITY);
  scene.run(10_000);
  const from = scene.timeline.now;
  scene.run(60_000);
  const perInstance = scene.dialers.map(({ used }) => used.filter((at) => at >= from).length);
  expect(Math.min(...perInstance)).toBeGreaterThan(0.8 * 300);
  expect(Math.max(...perInstance)).toBeLessThan(1.2 * 300);
  expect(perInstance.reduce((a, b) => a + b)).toBeGreaterThan(6_000 * 0.98);
  // A permit every 200 ms is the share of one of twenty.
  const gaps = scene.dialers.flatMap(({ used }) =>
    used.slice(1).map((at, i) => at - Math.max(from, used[i] as number)),
  );
  expect(Math.max(...gaps)).toBeLessThanOrEqual(400);
  expect(scene.excess).toBe(0);
});

test('a rate limit in a table is shared equally by any number, however fast they are connected to the table', () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer({ min: 1, max: 1e9 }),
        instances: fc.integer({ min: 2, max: 40 }),
        rate: fc.constantFrom(20, 50, 100),
      }),
      ({ seed, instances, rate }) => {
        const scene = new Scene(seed, { rate, burst: 10 * rate });
        for (let n = 0; n < instances; n++) {
          // The farthest takes four times as long as the nearest.
          scene.latencyMs = 5 + (15 * n) / instances;
          scene.start().want(Number.POSITIVE_INFINITY);
        }
        // Until what was saved up is gone.
        scene.run(30_000);
        const from = scene.timeline.now;
        scene.run(30_000);
        const shareMs = (instances / rate) * 1_000;
        for (const { used } of scene.dialers) {
          const later = used.filter((at) => at >= from);
          const gaps = later.map((at, i) => at - (later[i - 1] ?? from));
          // Besides, its own call takes up to 30 ms, and may have to be made again.
          expect(Math.max(...gaps)).toBeLessThanOrEqual(2 * shareMs + 2 * 30);
          expect(later.length).toBeGreaterThan((0.5 * 30_000) / shareMs);
        }
        expect(scene.uses.filter((at) => at >= from).length).toBeGreaterThan(0.97 * 30 * rate);
        expect(scene.excess).toBe(0);
      },
    ),
    { numRuns: Number(process.env['HEADGATE_RUNS'] ?? 12) },
  );
});

test('a rate limit in a table gives the whole rate to the last instance when the others stop', () => {
  const scene = new Scene(6);
  const [last, ...others] = Array.from({ length: 20 }, () => scene.start()) as [Dialer, ...Dialer[]];
  for (const dialer of [last, ...others]) dialer.want(Number.POSITIVE_INFINITY);
  scene.run(20_000);
  for (const other of others) other.want(0);
  scene.run(2_000);
  const before = last.used.length;
  scene.run(20_000);
  expect(last.used.length - before).toBeGreaterThan(2_000 * 0.98);
  expect(scene.excess).toBe(0);
});

test('a rate limit in a table costs one call for each connection that is opened now and then, and one for many that are opened together', () => {
  const scene = new Scene(7);
  const one = scene.start();
  for (let n = 0; n < 100; n++) {
    one.want(1);
    scene.run(5_000);
  }
  expect(one.used.length).toBe(100);
  expect(one.limiter.stats().calls.writes).toBeLessThan(110);
  const { writes } = one.limiter.stats().calls;
  one.want(1_000);
  scene.run(20_000);
  expect(one.used.length).toBe(1_100);
  expect(one.limiter.stats().calls.writes - writes).toBeLessThan(0.2 * 1_000);
});

test('a rate limit in a table lets a newcomer in among many who never stop, within twice its share', () => {
  const scene = new Scene(3);
  for (let n = 0; n < 50; n++) scene.start().want(Number.POSITIVE_INFINITY);
  scene.run(20_000);
  const late = scene.start();
  const from = scene.timeline.now;
  late.want(5);
  scene.run(10_000);
  expect(late.used.length).toBe(5);
  expect((late.used[0] as number) - from).toBeLessThan(2 * 510);
  expect((late.used[4] as number) - from).toBeLessThan(2 * 5 * 510);
});

test('a rate limit in a table goes on at half the speed when the server finds it too fast', () => {
  const scene = new Scene(4);
  const one = scene.start();
  one.want(Number.POSITIVE_INFINITY);
  scene.run(20_000);
  one.limiter.refused(0);
  const before = one.used.length;
  scene.run(20_000);
  expect(one.used.length - before).toBeLessThan(20 * 51);
  expect(one.limiter.rate).toBe(50);
  for (let n = 0; n < 25; n++) one.limiter.opened();
  expect(one.limiter.rate).toBe(100);
});

test('a rate limit in a table gives nothing while the table is down, or what was promised for that case', () => {
  for (const localShare of [undefined, { rate: 5, burst: 1 }]) {
    const scene = new Scene(5, { localShare });
    const one = scene.start();
    one.want(Number.POSITIVE_INFINITY);
    scene.run(20_000);
    scene.isTableDown = true;
    scene.run(10_000);
    const before = one.used.length;
    scene.run(60_000);
    expect((one.used.length - before) / 60).toBeCloseTo(localShare === undefined ? 0 : 5, 0);
    scene.isTableDown = false;
    scene.run(10_000);
    const after = one.used.length;
    scene.run(10_000);
    expect(one.used.length - after).toBeGreaterThan(950);
  }
});

test('a rate limit in a table is never exceeded in any window of time, with any clocks, lost calls, slow calls and outages', () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer({ min: 1, max: 1e9 }),
        ...{ rate: fc.constantFrom(5, 90, 100), depth: fc.constantFrom(1, 2, 10, 100) },
        latencyMs: fc.constantFrom(2, 20, 400),
        instances: fc.integer({ min: 1, max: 12 }),
      }),
      ({ seed, rate, depth, latencyMs, instances }) => {
        const burst = leastBurst(rate) * depth;
        const scene = new Scene(seed, { rate, burst });
        const { random, timeline } = scene;
        scene.latencyMs = latencyMs;
        scene.faults = { lostRequests: 0.05, lostReplies: 0.05, conflicts: 0, throttles: 0.05 };
        for (let n = 0; n < instances; n++) scene.start();
        const end = timeline.now + 60_000;
        while (timeline.now < end) {
          const one = scene.dialers[Math.floor(random.next() * instances)] as Dialer;
          const drawn = random.next();
          if (drawn < 0.5) one.want(Math.floor(random.next() * 50));
          else if (drawn < 0.6) one.want(1_000);
          else if (drawn < 0.62) scene.isTableDown = true;
          else if (drawn < 0.7) scene.isTableDown = false;
          scene.run(random.next() * 2_000);
        }
        expect(scene.excess).toBe(0);
      },
    ),
    { numRuns: Number(process.env['HEADGATE_RUNS'] ?? 40) },
  );
});
