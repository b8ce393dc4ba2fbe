// The same requests in a program of ES modules.
import { createRequire } from 'node:module';
import * as headgate from 'headgate';
import * as dsql from 'headgate/dsql';
import pg from 'pg';

const { runRequests: run } = createRequire(import.meta.url)('./requests.cjs');

export function runRequests(kind, count, inRequest) {
  return run(kind, count, inRequest, { pg, headgate, dsql });
}
