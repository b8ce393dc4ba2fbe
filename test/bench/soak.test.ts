// The short form of `npm run bench -- soak`: attackers beside honest clients for some seconds. How fast the honest ones are answered is not
// looked at here, since other tests run at the same time.
import { expect, test } from 'vitest';
import { soak } from '../../bench/soak/show.mjs';
import { startEmbeddedPostgres } from '../../scripts/lib/embedded-postgres.mjs';

const isLinux = process.platform === 'linux';

test.skipIf(!isLinux)(
  'attackers beside honest clients cost them no answer, and leave nothing in the process of the pooler',
  async () => {
    const database = await startEmbeddedPostgres({ maxConnections: 150 });
    try {
      const { report } = await soak.run(database, { length: 'short' });
      expect(report.attacks).toBeGreaterThan(0);
      expect(report.answered).toBeGreaterThan(0);
      expect({ lost: report.lost, lastError: report.lastError }).toEqual({ lost: 0, lastError: undefined });
      expect(report.counted).toBe(report.committed);
      expect(report.megabytes.last).toBeLessThan(report.megabytes.first + 50);
      expect(report.files.last).toBeLessThan(report.files.first + 20);
    } finally {
      await database.stop();
    }
  },
);
