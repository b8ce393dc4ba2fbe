/**
 * One rate limiter for each cluster. The server counts what a whole cluster is asked to open, so the pools of a process
 * that lead to the same one share what the process may take of that, unless they are given limiters of their own.
 */
import { TokenBucket, type TokenBucketOptions } from '../core/token-bucket.js';
import { clusterName, type Endpoint } from './endpoint.js';

/** Kept for as long as the process: who makes a pool for each task must not get a full bucket with each. */
const buckets = new Map<string, TokenBucket>();

/** The bucket of a cluster. Pools with other numbers have another. */
export function sharedBucket(cluster: Endpoint, { rate, burst }: TokenBucketOptions): TokenBucket {
  const key = JSON.stringify([clusterName(cluster), rate, burst]);
  let bucket = buckets.get(key);
  if (bucket === undefined) {
    bucket = new TokenBucket({ rate, burst });
    buckets.set(key, bucket);
  }
  return bucket;
}
