/** Options: limits that several poolers on several machines share through a DynamoDB table. */
import { lossPolicies } from '../../coordination/dynamodb/lease-settings.js';
import { duration, integer, oneOf, text } from './kinds.js';
import { option, override } from './option.js';

/** The content of the table was written with these values. */
const joined = { reload: 'restart', whyRestart: 'the fleet is joined at the start' } as const;

export const fleetOptions = {
  table: option(text, undefined, {
    name: 'fleet_table',
    meaning: 'the DynamoDB table that all poolers of the fleet share',
    ...joined,
  }),
  limit: option(integer({ min: 0, max: 10_000_000, zero: 'no limit' }), 0, {
    name: 'fleet_limit',
    meaning: 'connections of the whole fleet to each server',
    ...joined,
  }),
  rate: option(integer({ min: 0, max: 1_000_000, zero: 'no limit' }), 0, {
    name: 'fleet_rate',
    meaning: 'connections a second that the whole fleet opens to each server, on average',
    ...joined,
  }),
  burst: override(integer({ min: 1, max: 10_000_000 }), {
    name: 'fleet_burst',
    meaning: 'connections that the fleet may open at once after a quiet time',
    ...joined,
    defaultText: 'ten times the rate',
  }),
  rateTable: option(text, undefined, {
    name: 'fleet_rate_table',
    meaning: 'the table of the rate, where it is another one',
    ...joined,
    defaultText: 'table',
  }),
  region: option(text, undefined, {
    name: 'fleet_region',
    meaning: 'the AWS region of the tables',
    ...joined,
    defaultText: "as AWS's tools find it",
  }),
  endpointUrl: option(text, undefined, {
    name: 'fleet_endpoint_url',
    meaning: "another address than AWS's, as of DynamoDB Local",
    ...joined,
  }),
  endpoint: option(text, undefined, {
    name: 'fleet_endpoint',
    meaning: 'what the server is called in the table, where there is one server; all of the fleet must agree',
    ...joined,
    defaultText: 'its host and port; of Aurora DSQL the endpoint of the cluster',
  }),
  instance: option(text, undefined, {
    name: 'fleet_instance',
    meaning: 'what this pooler is called in the table',
    ...joined,
    defaultText: 'host and process',
  }),
  service: option(text, 'headgate', {
    name: 'fleet_service',
    meaning: 'what poolers of its kind are called in the table',
    ...joined,
  }),
  leaseFor: option(duration(undefined), 180_000, {
    name: 'fleet_lease_for',
    meaning: 'how long a lease lasts that is not renewed',
    ...joined,
  }),
  renewEvery: override(duration(undefined), {
    name: 'fleet_renew_every',
    meaning: 'how often a lease is renewed',
    ...joined,
    defaultText: 'half of leaseFor',
  }),
  grace: option(duration(undefined), 30_000, {
    name: 'fleet_grace',
    meaning: 'how long an expired lease is left alone, so that its owner can close its connections',
    ...joined,
  }),
  block: option(integer({ min: 1, max: 100_000 }), 20, {
    name: 'fleet_block',
    meaning: 'connections that are leased ahead of need, at most',
    ...joined,
  }),
  onCoordinatorLoss: option(oneOf(...lossPolicies), 'hold', {
    name: 'fleet_on_coordinator_loss',
    meaning: 'what happens to connections whose lease has expired because the table does not answer',
    ...joined,
  }),
  localShare: override(integer({ min: 0, max: 10_000_000 }), {
    name: 'fleet_local_share',
    meaning: 'connections to each server while the table does not answer, with localShare',
    ...joined,
  }),
  timeout: option(duration(undefined), 5_000, {
    name: 'fleet_timeout',
    meaning: 'how long one call of a table may take',
    ...joined,
  }),
  batch: option(integer({ min: 1, max: 10_000 }), 10, {
    name: 'fleet_batch',
    meaning: 'permits to open connections that are taken at once, at most',
    ...joined,
  }),
  maxWait: option(duration(undefined), 30_000, {
    name: 'fleet_max_wait',
    meaning:
      'the longest queue for permits that an instance joins; while it is longer, the instance asks again later',
    ...joined,
  }),
  localRate: option(integer({ min: 0, max: 1_000_000, zero: 'none' }), 0, {
    name: 'fleet_local_rate',
    meaning: 'connections a second that each process opens while the table of the rate does not answer',
    ...joined,
  }),
};
