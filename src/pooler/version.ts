/** The version of Headgate, as its package says. */
import { createRequire } from 'node:module';

export const { version: headgateVersion } = createRequire(import.meta.url)('../../package.json') as {
  readonly version: string;
};
