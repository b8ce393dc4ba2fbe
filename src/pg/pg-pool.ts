/** The class that can stand in for the pg-pool package: it must not load pg, which is about to load it. */
import { EventEmitter } from 'node:events';
import { ownRequire } from '../runtime/own-location.js';
import type { PgClientClass } from './client.js';
import { definePool } from './define-pool.js';
import type { PoolClass } from './pool-interface.js';

/** `Pool` over a plain EventEmitter, to stand in for the pg-pool package. */
export const PgPool: PoolClass = definePool(
  EventEmitter,
  () => (ownRequire('pg') as { Client: PgClientClass }).Client,
);
