// Host, region and cluster id from whichever of them is given.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusterName, type Endpoint, type EndpointOptions, readEndpoint } from '../../src/dsql/endpoint.js';

const id = 'abcdefghij0123456789klmnop';
const host = `${id}.dsql.us-east-1.on.aws`;
const ids = fc.stringMatching(/^[a-z0-9]{26}$/);
const regions = fc.constantFrom('us-east-1', 'eu-west-3', 'ap-southeast-4', 'us-gov-west-1');

const endpointOf = (options: EndpointOptions, usual?: string) => readEndpoint(options, usual).endpoint;
const pathsOf = (options: EndpointOptions, usual?: string) =>
  readEndpoint(options, usual).problems.map(({ path }) => path);

test('an endpoint says its region and its cluster id', () => {
  expect(endpointOf({ host })).toEqual({ host, region: 'us-east-1', clusterId: id });
});

test('an endpoint is the same from a host, from an id and a region, and from an id in place of the host', () => {
  fc.assert(
    fc.property(ids, regions, (clusterId, region) => {
      const made = endpointOf({ clusterId, region });
      expect(made).toEqual({ host: `${clusterId}.dsql.${region}.on.aws`, region, clusterId });
      expect(endpointOf({ host: made?.host })).toEqual(made);
      expect(endpointOf({ host: clusterId, region })).toEqual(made);
      expect(endpointOf({ host: `${made?.host}.`.toUpperCase(), clusterId, region })).toEqual(made);
    }),
  );
});

test('an endpoint has one name for all who must agree on it, whichever way they connect', () => {
  const nameOf = (options: EndpointOptions): string => clusterName(endpointOf(options) as Endpoint);
  expect(nameOf({ host })).toBe(host);
  expect(nameOf({ clusterId: id, region: 'us-east-1' })).toBe(host);
  expect(nameOf({ host: `${id}.dsql-fnh4.us-east-1.on.aws` })).toBe(host);
  expect(nameOf({ host: 'proxy.example', clusterId: id, region: 'us-east-1' })).toBe(host);
  expect(nameOf({ host: 'proxy.example', region: 'us-east-1' })).toBe('proxy.example');
});

test('an endpoint may lead through PrivateLink', () => {
  const privateHost = `${id}.dsql-fnh4.us-east-1.on.aws`;
  expect(endpointOf({ host: privateHost })).toEqual({
    host: privateHost,
    region: 'us-east-1',
    clusterId: id,
  });
});

test.each(['localhost', '127.0.0.1', '::1', 'db.example'])(
  'an endpoint may be %s when the region is given',
  (name) => {
    expect(endpointOf({ host: name, region: 'us-east-1' })).toEqual({
      host: name,
      region: 'us-east-1',
      clusterId: undefined,
    });
    expect(pathsOf({ host: name })).toEqual(['region']);
  },
);

test('an endpoint takes the usual region only when nothing else names one', () => {
  expect(endpointOf({ clusterId: id }, 'eu-west-1')?.region).toBe('eu-west-1');
  expect(endpointOf({ host }, 'eu-west-1')?.region).toBe('us-east-1');
});

test.each<[string, EndpointOptions, string[]]>([
  ['without a host and an id', { region: 'us-east-1' }, ['host']],
  ['with nothing at all, twice', {}, ['host', 'region']],
  ['when host and region contradict', { host, region: 'eu-west-1' }, ['region']],
  ['when host and clusterId contradict', { host, clusterId: id.replace('a', 'b') }, ['clusterId']],
  ['with an id of the wrong length', { clusterId: 'abc', region: 'us-east-1' }, ['clusterId']],
  ['with a region that is none', { clusterId: id, region: 'here' }, ['region']],
  ['with a host that is nothing', { host: 'my cluster!', region: 'us-east-1' }, ['host']],
  ['with a name without a dot that is no id', { host: 'mycluster', region: 'us-east-1' }, ['host']],
  ['with half an endpoint', { host: `${id}.rds.us-east-1.on.aws`, region: 'us-east-1' }, ['host']],
  ['with a host that is not a text', { host: 5, region: 'us-east-1' }, ['host']],
  ['with all that is wrong at once', { clusterId: 'abc', region: 'here' }, ['clusterId', 'region']],
])('an endpoint is refused %s', (_name, options, paths) => {
  expect(endpointOf(options)).toBeUndefined();
  expect(pathsOf(options)).toEqual(paths);
});

test('an endpoint is refused or found, whatever it is, and never both', () => {
  const texts = fc.option(fc.oneof(fc.string(), ids, regions, fc.constant(host)), { nil: undefined });
  fc.assert(
    fc.property(texts, texts, texts, (anyHost, clusterId, region) => {
      const { endpoint, problems } = readEndpoint({ host: anyHost, clusterId, region });
      expect(endpoint === undefined).toBe(problems.length > 0);
    }),
  );
});
