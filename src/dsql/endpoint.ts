/** Where a cluster is: its host, region and id, from whichever of them the program knows. */
import { isIP } from 'node:net';
import type { OptionProblem } from '../kernel/errors.js';

/** The way to a cluster. */
export interface Endpoint {
  /** The name to connect to, to send as SNI, and to sign tokens for. */
  readonly host: string;
  readonly region: string;
  /** Unknown where the host is not a cluster's own name. */
  readonly clusterId: string | undefined;
}

/**
 * Name of a cluster where several programs must agree on it: its own endpoint, also where it is reached through PrivateLink, or
 * the host where the cluster's id is not known.
 */
export function clusterName({ clusterId, host, region }: Endpoint): string {
  return clusterId === undefined ? host : `${clusterId}.dsql.${region}.on.aws`;
}

export interface EndpointOptions {
  readonly host?: unknown;
  readonly clusterId?: unknown;
  readonly region?: unknown;
}

const idPattern = /^[a-z0-9]{26}$/;
const regionPattern = /^[a-z]{2,}(-[a-z]+)+-\d+$/;
/** `<id>.dsql.<region>.on.aws`, and through PrivateLink `<id>.dsql-<suffix>.<region>.on.aws`. */
const hostPattern = /^([a-z0-9]{26})\.dsql(?:-[a-z0-9]+)?\.([a-z0-9-]+)\.on\.aws$/;
const namePattern = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/;

/**
 * Finds the endpoint, or everything that is wrong with what was given. `usualRegion` is for when the options name none,
 * e.g. the one of the environment.
 */
export function readEndpoint(
  options: EndpointOptions,
  usualRegion?: string,
): { readonly endpoint?: Endpoint; readonly problems: readonly OptionProblem[] } {
  const problems: OptionProblem[] = [];
  const problem = (path: string, message: string): void => {
    problems.push({ path, message });
  };
  const text = (path: keyof EndpointOptions): string | undefined => {
    const value = options[path];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string' && value.trim() !== '')
      return value.trim().toLowerCase().replace(/\.$/, '');
    problem(path, `must be a text that is not empty, not ${typeof value === 'string' ? "''" : typeof value}`);
    return undefined;
  };

  const given = text('host');
  // A host that is nothing but an id is a cluster id in the wrong place; what is meant is clear.
  const host = given !== undefined && idPattern.test(given) ? undefined : given;
  const idInPlaceOfHost = host === undefined ? given : undefined;
  const clusterId = text('clusterId') ?? idInPlaceOfHost;
  const region = text('region');
  const parts = host === undefined ? null : hostPattern.exec(host);
  const [, hostId, hostRegion] = parts ?? [];

  if (options.host == null && options.clusterId == null)
    problem('host', "is missing: give the cluster's endpoint, or clusterId and region");
  if (clusterId !== undefined && !idPattern.test(clusterId))
    problem('clusterId', `must be 26 letters and digits, not '${clusterId.slice(0, 40)}'`);
  if (idInPlaceOfHost !== undefined && clusterId !== idInPlaceOfHost)
    problem('clusterId', `is ${clusterId}, but host names the cluster ${idInPlaceOfHost}`);
  if (region !== undefined && !regionPattern.test(region))
    problem('region', `must be the name of a region such as 'us-east-1', not '${region.slice(0, 40)}'`);
  if (hostId !== undefined && clusterId !== undefined && hostId !== clusterId)
    problem('clusterId', `is ${clusterId}, but host names the cluster ${hostId}`);
  if (hostRegion !== undefined && !regionPattern.test(hostRegion))
    problem('host', `names '${hostRegion}' where a region belongs`);
  else if (hostRegion !== undefined && region !== undefined && hostRegion !== region)
    problem('region', `is ${region}, but host is in ${hostRegion}`);
  if (host !== undefined && parts === null) {
    if (!isAddress(host))
      problem(
        'host',
        `is neither a cluster's endpoint nor a cluster id nor a host name: '${host.slice(0, 80)}'`,
      );
    else if (host.endsWith('.on.aws'))
      problem('host', `must look like <cluster id>.dsql.<region>.on.aws, not '${host.slice(0, 80)}'`);
  }
  const found = region ?? hostRegion ?? usualRegion;
  if (found === undefined) problem('region', 'is missing, and host does not contain it');

  if (problems.length > 0 || found === undefined) return { problems };
  return {
    problems,
    endpoint: Object.freeze({
      host: host ?? `${clusterId}.dsql.${found}.on.aws`,
      region: found,
      clusterId: clusterId ?? hostId,
    }),
  };
}

/** Another way to a cluster, such as a name of one's own in DNS, or a stand-in on this machine. */
function isAddress(host: string): boolean {
  return host === 'localhost' || isIP(host) !== 0 || namePattern.test(host);
}
