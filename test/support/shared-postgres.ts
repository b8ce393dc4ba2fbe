// Starts the one server that the test files share, before the first of them that needs it, and stops it after the last.
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../scripts/lib/embedded-postgres.mjs';

/** Vitest calls this by its name. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startEmbeddedPostgres({ maxConnections: 300 });
  project.provide('sharedPostgresUrl', server.url);
  return () => server.stop();
}
