/** The program of a worker process of `headgate serve`. The supervisor tells it everything else. */
import { runWorker } from '../pooler/worker/worker.js';
import { iamTokens } from './iam-tokens.js';
import { makeFleet } from './serve-fleet.js';

runWorker(process, { makeIamToken: iamTokens({ environment: process.env }), makeFleet });
