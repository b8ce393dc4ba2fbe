/** `headgate/dashboard`: the live page for pools inside a program. */
export type { ShownPool } from './dashboard/pool-source.js';
export {
  type Dashboard,
  type DashboardAction,
  type DashboardOptions,
  dashboard,
} from './dashboard/serve-dashboard.js';
export type { ObservedPool } from './observe/observed-pool.js';
