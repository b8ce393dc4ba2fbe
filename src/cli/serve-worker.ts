/** The program of a worker process of `headgate serve`. The supervisor tells it everything else. */
import { runWorker } from '../pooler/worker/worker.js';
import { iamTokens } from './iam-tokens.js';
import { becomeUser } from './run-as.js';
import { makeFleet } from './serve-fleet.js';

runWorker(process, {
  makeIamToken: iamTokens({ environment: process.env }),
  makeFleet,
  opened({ admin }) {
    // A worker that replaces another one is started by a supervisor that is root no more.
    if (process.getuid?.() === 0) becomeUser(admin.runAs);
  },
});
