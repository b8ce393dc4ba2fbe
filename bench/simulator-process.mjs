// @ts-check
// One simulation, and what it cost: `node simulator-process.mjs '{"scenario":"ecs-400wps","minutes":30}'`.
import { readScenario, readScenarioFile, shippedScenarios, simulate } from '../dist/simulator.js';

/** @type {{ scenario?: string, services?: number, size?: number, minutes: number }} */
const { scenario: name, services = 1, size = 1, minutes } = JSON.parse(process.argv[2] ?? '{}');

/** Each service has as many callers, whatever its size. */
const written = {
  name: `${services} services`,
  duration: `${minutes}m`,
  server: { connectionLimit: 25_000 },
  limiter: { perSecond: 90, burst: 90, scope: 'shared' },
  services: [
    {
      name: 'service',
      count: services,
      pool: { max: size, reservoir: true },
      workload: { perSecond: 20, hold: '10ms' },
    },
  ],
};

const path = shippedScenarios().find((shipped) => shipped.name === name)?.path;
const plan = path === undefined ? readScenario(written) : readScenarioFile(path);
const begun = process.cpuUsage();
const { events } = simulate({ ...plan, durationMs: minutes * 60_000 });
const { user, system } = process.cpuUsage(begun);
const seconds = (user + system) / 1e6;
const megabytes = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ services, size, seconds, events, megabytes }));
