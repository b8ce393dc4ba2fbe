/** What a worker process of `headgate serve` runs. It is told everything else by the process that has started it. */
import { runWorker } from '../pooler/workers/worker.js';
import { iamTokens } from './iam-tokens.js';
import { makeFleet } from './serve-fleet.js';

runWorker(process, { makeIamToken: iamTokens({ environment: process.env }), makeFleet });
