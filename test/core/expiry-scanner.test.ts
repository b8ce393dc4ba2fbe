// Seeing to connections that end while nobody uses them, and to crowds of them before they end.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ScanSituation } from '../../src/core/expiry-scanner.js';
import { ExpiryScanner } from '../../src/core/expiry-scanner.js';
import { IdleConnections } from '../../src/core/idle-connections.js';
import { PooledConnection } from '../../src/core/pooled-connection.js';

type Pooled = PooledConnection<string>;

const guardMs = 500;
const lifeMs = 10_000;

/** A reservoir without its pool: what is idle, the scanner, and how things stand as the test says. */
class Scene {
  readonly idle = new IdleConnections<string>('fifo');
  readonly discarded: [id: number, reason: string][] = [];
  readonly situation = {
    spareRoom: 0,
    missing: 0,
    /** How many may be missing. */
    tolerance: 1,
    perMs: 0.01,
    dialMs: 50,
    get wouldFillAPlace(): boolean {
      return this.missing < this.tolerance;
    },
  };
  readonly scanner = new ExpiryScanner<string>(lifeMs, this.idle, (connection, reason) => {
    this.scanner.forget(connection);
    connection.state = 'closing';
    this.discarded.push([connection.id, reason]);
    this.situation.missing++;
  });
  #lastId = 0;

  open(expiresAt: number, now = 0): Pooled {
    const pooled = new PooledConnection('c', ++this.#lastId, now, expiresAt, expiresAt - guardMs, undefined);
    this.scanner.watch(pooled, now);
    this.idle.add(pooled, now);
    return pooled;
  }

  lend(pooled: Pooled): void {
    this.idle.remove(pooled);
    pooled.state = 'in_use';
  }

  /** Scans at every time at which the scanner wants to, until `until`. */
  scanUntil(until: number): number {
    let scans = 0;
    for (let at = this.scanner.nextScanAt; at <= until; at = this.scanner.nextScanAt) {
      this.scan(at);
      scans++;
    }
    return scans;
  }

  scan(now: number): void {
    this.scanner.scan(now, this.situation as unknown as ScanSituation);
  }
}

test('The scanner has nothing to do until there is a connection, then looks every second', () => {
  const scene = new Scene();
  expect(scene.scanner.nextScanAt).toBe(Number.POSITIVE_INFINITY);
  scene.open(lifeMs, 100);
  expect(scene.scanner.nextScanAt).toBe(1_100);
  // Others do not put it off.
  scene.open(lifeMs, 900);
  expect(scene.scanner.nextScanAt).toBe(1_100);
  expect(scene.scanUntil(5_100)).toBe(5);
  expect(scene.discarded).toEqual([]);
});

test('The scanner rests again when the last connection is gone', () => {
  const scene = new Scene();
  const pooled = scene.open(lifeMs);
  scene.idle.remove(pooled);
  scene.scanner.forget(pooled);
  scene.scanUntil(1_000);
  expect(scene.scanner.nextScanAt).toBe(Number.POSITIVE_INFINITY);
  scene.open(lifeMs, 7_000);
  expect(scene.scanner.nextScanAt).toBe(8_000);
});

test('The scanner discards what is inside the guard window, and what it finds past its end under another word', () => {
  const scene = new Scene();
  scene.open(2_499);
  scene.open(1_500);
  scene.open(2_501);
  scene.open(2_000);
  scene.scan(2_000);
  expect(scene.discarded).toEqual([
    [2, 'expired_on_scan'],
    [4, 'expired_on_scan'],
    [1, 'expiring_soon_on_scan'],
  ]);
  expect([...scene.idle].map(({ id }) => id)).toEqual([3]);
});

test('The scanner does not touch a connection that is in use, however old, and does not look at it again', () => {
  const scene = new Scene();
  const old = scene.open(2_000);
  scene.lend(old);
  scene.scan(3_000);
  expect(scene.discarded).toEqual([]);
  expect(old).toMatchObject({ state: 'in_use', expiring: true, heapIndex: -1 });
});

test('The scanner does nothing before its time, however often it is called', () => {
  const scene = new Scene();
  scene.open(1_200);
  scene.scan(999);
  expect(scene.discarded).toEqual([]);
  scene.scan(1_000);
  expect(scene.discarded).toHaveLength(1);
});

test('The scanner finds one that came back a fraction before its end, although the alarm had rung for it', () => {
  const scene = new Scene();
  const old = scene.open(2_500);
  scene.lend(old);
  scene.scan(2_000);
  scene.idle.add(old, 1_999.5);
  scene.scanner.watch(old, 1_999.5);
  scene.scanUntil(4_000);
  expect(scene.discarded).toEqual([[1, 'expired_on_scan']]);
  expect(scene.idle.spares).toBe(0);
});

function crowd(count: number, situation: Partial<Scene['situation']>): Scene {
  const scene = new Scene();
  Object.assign(scene.situation, situation);
  for (let n = 0; n < count; n++) scene.open(lifeMs);
  return scene;
}

test('Of a crowd that ends together none goes while there is time to replace all', () => {
  // Twenty at ten a second take two seconds, the first of them begins a dial and a look earlier, and a day of the
  // calendar is 39 ms.
  const scene = crowd(20, { spareRoom: 5 });
  scene.scanUntil(lifeMs - guardMs - 2_000 - 150 - 40);
  expect(scene.idle.spares).toBe(20);
});

test('Of a crowd that ends together those that are to go are marked where there is room, stay ready, and go when their replacements are here', () => {
  const scene = crowd(20, {});
  const { idle, situation } = scene;
  // What the pool would say with two free places: each that is marked is missing, and takes one of them.
  const missing = (): number => 20 - idle.spares;
  Object.defineProperty(situation, 'missing', { get: missing, set: () => {} });
  Object.defineProperty(situation, 'spareRoom', { get: () => 2 - missing() });
  scene.scan(lifeMs - guardMs - 1_500);
  const marked = [...idle].filter(({ expiring }) => expiring).map(({ id }) => id);
  expect(marked).toHaveLength(2);
  expect([idle.size, idle.spares]).toEqual([20, 18]);

  const next = scene.scanner.nextScanAt;
  scene.scan(next);
  expect(scene.discarded).toEqual([]);
  // Two younger ones arrive.
  for (let n = 0; n < 2; n++) scene.open(2 * lifeMs, next);
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toEqual(marked.map((id) => [id, 'expiring_soon_on_scan']));
  // The next two have been marked in their turn.
  expect([idle.size, idle.spares]).toEqual([20, 18]);
});

test('Of a crowd that ends together one that is marked and in use is left alone, and goes when it has come back', () => {
  const scene = crowd(2, { spareRoom: 1 });
  scene.scan(lifeMs - guardMs - 300);
  const marked = [...scene.idle].find(({ expiring }) => expiring);
  if (marked === undefined) throw new Error('None was marked.');
  scene.lend(marked);
  scene.situation.spareRoom = 0;
  scene.situation.tolerance = 0;
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toEqual([]);
  expect(marked.state).toBe('in_use');
  scene.idle.add(marked, scene.scanner.nextScanAt);
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toEqual([[marked.id, 'expiring_soon_on_scan']]);
});

test('Of a crowd that ends together as many go as were replaced, and the others wait for theirs', () => {
  const scene = crowd(20, { spareRoom: 3 });
  const { idle, situation } = scene;
  const missing = (): number => Math.max(0, 20 - idle.spares);
  Object.defineProperty(situation, 'missing', { get: missing, set: () => {} });
  Object.defineProperty(situation, 'spareRoom', { get: () => 3 - missing(), configurable: true });
  scene.scan(lifeMs - guardMs - 1_500);
  expect(idle.spares).toBe(17);
  Object.defineProperty(situation, 'spareRoom', { get: () => 0 });
  situation.tolerance = 0;
  scene.open(2 * lifeMs, 8_000);
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toHaveLength(1);
  for (let n = 0; n < 2; n++) scene.open(2 * lifeMs, 8_000);
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toHaveLength(3);
});

test('Of a crowd that ends together the first goes in time for its replacement: the look for that comes a dial and a pause before', () => {
  const scene = crowd(20, { tolerance: 1 });
  // Twenty at ten a second from here on, a dial of 50 ms, a pause of 100 ms, and a day of 39 ms.
  const first = lifeMs - guardMs - 2_000 - 150;
  scene.scan(first - 500);
  expect(scene.discarded).toEqual([]);
  expect(scene.scanner.nextScanAt).toBeLessThanOrEqual(first);
  expect(scene.scanner.nextScanAt).toBeGreaterThanOrEqual(first - 40);
});

test('Of a crowd that ends together as many go at once as may be missing, where there is no room to open others first', () => {
  const scene = crowd(20, { tolerance: 3 });
  scene.scan(lifeMs - guardMs - 1_000);
  expect(scene.discarded).toHaveLength(3);
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toHaveLength(3);
  scene.situation.missing = 1;
  scene.scan(scene.scanner.nextScanAt);
  expect(scene.discarded).toHaveLength(5);
  expect(scene.discarded.every(([, reason]) => reason === 'expiring_soon_on_scan')).toBe(true);
});

test('Of a crowd that ends together those that are in use are passed over, and the next are looked at', () => {
  const scene = crowd(20, { tolerance: 2 });
  for (const pooled of [...scene.idle].slice(0, 5)) scene.lend(pooled);
  scene.scan(lifeMs - guardMs - 500);
  expect(scene.discarded.map(([id]) => id)).toHaveLength(2);
  for (const pooled of [...scene.idle]) expect(pooled.state).toBe('idle');
});

test('Of a crowd that ends together it looks more often than every second, as often as the source opens one', () => {
  const scene = crowd(20, { tolerance: 1 });
  const from = lifeMs - guardMs - 1_000;
  scene.scanner.scan(from, scene.situation as unknown as ScanSituation);
  expect(scene.scanner.nextScanAt).toBe(from + 100);
});

const happening = fc.oneof(
  fc.record({ open: fc.integer({ min: 2, max: 20 }).map((halves) => halves * 500) }),
  fc.record({ lend: fc.nat(100) }),
  fc.record({ giveBack: fc.nat(100) }),
  fc.record({ close: fc.nat(100) }),
  fc.record({ wait: fc.integer({ min: 0, max: 6 }).map((halves) => halves * 500) }),
  fc.record({ room: fc.integer({ min: 0, max: 3 }), tolerance: fc.integer({ min: 1, max: 3 }) }),
);
type Happening = typeof happening extends fc.Arbitrary<infer H> ? H : never;
const history = fc.array(happening, { maxLength: 80 });

/** Plays it, and tells when it was over. */
function play(scene: Scene, happenings: readonly Happening[], afterEach: (now: number) => void): number {
  const inUse: Pooled[] = [];
  let now = 0;
  for (const what of happenings) {
    const idle = [...scene.idle];
    if ('open' in what) scene.open(now + what.open, now);
    else if ('lend' in what) {
      const pooled = idle[what.lend % (idle.length || 1)];
      if (pooled !== undefined && now < pooled.lendUntil) {
        scene.lend(pooled);
        inUse.push(pooled);
      }
    } else if ('giveBack' in what) {
      const [pooled] = inUse.splice(what.giveBack % (inUse.length || 1), 1);
      if (pooled === undefined) continue;
      // A moment early, as it may seem to a clock that is read once a turn.
      if (now - 1 >= pooled.lendUntil) scene.scanner.forget(pooled);
      else {
        scene.idle.add(pooled, now);
        if (pooled.heapIndex < 0) scene.scanner.watch(pooled, now);
      }
    } else if ('close' in what) {
      const pooled = idle[what.close % (idle.length || 1)];
      if (pooled === undefined) continue;
      scene.idle.remove(pooled);
      scene.scanner.forget(pooled);
    } else if ('room' in what) {
      scene.situation.spareRoom = what.room;
      scene.situation.missing = 0;
      scene.situation.tolerance = what.tolerance;
    } else {
      now += what.wait;
      scene.scanUntil(now);
    }
    for (const pooled of inUse) expect(pooled.state).toBe('in_use');
    afterEach(now);
  }
  for (const pooled of [...scene.idle]) {
    scene.idle.remove(pooled);
    scene.scanner.forget(pooled);
  }
  for (const pooled of inUse) scene.scanner.forget(pooled);
  return now;
}

test('In random lives no idle connection outlives a scan, none is discarded twice, and none in use is touched', () => {
  fc.assert(
    fc.property(history, (happenings) => {
      const scene = new Scene();
      play(scene, happenings, (now) => {
        for (const pooled of scene.idle) expect(now).toBeLessThanOrEqual(pooled.lendUntil + 1_000);
        const marked = [...scene.idle].filter(({ expiring }) => expiring).length;
        expect(scene.idle.spares).toBe(scene.idle.size - marked);
      });
      const ids = scene.discarded.map(([id]) => id);
      expect(new Set(ids).size).toBe(ids.length);
    }),
    { numRuns: 300 },
  );
});

test('In random lives nothing is remembered of closed connections: a new crowd fares as if it were the first', () => {
  /** When each of ten that end together goes, from now on. */
  function endOfACrowd(scene: Scene, now: number): number[] {
    scene.scanUntil(now + 2_000);
    const times: number[] = [];
    Object.assign(scene.situation, { spareRoom: 0, missing: 0, tolerance: 1 });
    // At the same time of a day, so that the two calendars are alike.
    const begun = Math.ceil((now + 3_000) / lifeMs) * lifeMs;
    for (let n = 0; n < 10; n++) scene.open(begun + lifeMs, begun);
    for (let at = scene.scanner.nextScanAt; at < begun + lifeMs; at = scene.scanner.nextScanAt) {
      const before = scene.discarded.length;
      scene.scan(at);
      for (let n = before; n < scene.discarded.length; n++) times.push(at - begun);
      scene.situation.missing = 0;
    }
    return times;
  }
  const asTheFirst = endOfACrowd(new Scene(), 0);
  expect(asTheFirst).toHaveLength(10);
  fc.assert(
    fc.property(history, (happenings) => {
      const scene = new Scene();
      const now = play(scene, happenings, () => {});
      expect(endOfACrowd(scene, now)).toEqual(asTheFirst);
    }),
    { numRuns: 300 },
  );
});

/** How often the scan reads when a connection ends, with `count` of them of which none does. */
function looksAt(count: number): number {
  const scene = new Scene();
  let looks = 0;
  for (let n = 0; n < count; n++) {
    const pooled = scene.open(5_000 + n * 1_000);
    const { lendUntil } = pooled;
    Object.defineProperty(pooled, 'lendUntil', {
      get: () => {
        looks++;
        return lendUntil;
      },
    });
  }
  looks = 0;
  scene.scan(1_000);
  return looks;
}

test('The cost of a scan does not grow with the number of connections of which none ends', () => {
  expect(looksAt(10_000)).toBe(looksAt(100));
  expect(looksAt(10_000)).toBeLessThan(10);
});
