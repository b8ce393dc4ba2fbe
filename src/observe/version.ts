/** The version of Headgate, from its package. */
import { createRequire } from 'node:module';

export const { version: headgateVersion } = createRequire(import.meta.url)('../../package.json') as {
  readonly version: string;
};
