/** AWS region of a token: from the configuration, the host or the environment. */
import type { Environment } from '../../kernel/environment.js';
import type { DatabaseConfig } from './pooler-config.js';

/** Endpoints of Aurora DSQL, of RDS and Aurora and their proxies, and of RDS in China. */
const hostPatterns = [
  /\.dsql(?:-[a-z0-9]+)?\.([a-z0-9-]+)\.on\.aws$/i,
  /\.([a-z]{2,}(?:-[a-z]+)+-\d+)\.rds\.amazonaws\.com$/i,
  /\.rds\.([a-z0-9-]+)\.amazonaws\.com\.cn$/i,
];

/** Undefined where no source has a region. */
export function iamRegionOf(
  { region }: Pick<DatabaseConfig, 'region'>,
  host: string,
  { AWS_REGION: usual, AWS_DEFAULT_REGION: other }: Environment,
): string | undefined {
  const inHost = hostPatterns.map((pattern) => pattern.exec(host)?.[1]).find(Boolean);
  return region ?? inHost?.toLowerCase() ?? (usual || other || undefined);
}
