/** The script of a report's page, as `npm run build` made it from web/src/report/. */
import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../kernel/errors.js';
import { packagePath } from '../../runtime/own-location.js';

/** The package is not whole, or was never built. */
class PageMissingError extends HeadgateError {
  constructor(path: string, cause: unknown) {
    const advice = 'run "npm run build" in the folder of Headgate, or leave its package out of a bundle';
    super('HG_PAGE_MISSING', `The script of the report's page can't be read (${path}): ${advice}.`, {
      cause,
    });
  }
}

let text: string | undefined;

/** Read once. It becomes part of the page, so that the page needs no other file. */
export function pageScript(): string {
  if (text !== undefined) return text;
  const path = packagePath('dist/page-report/report.js');
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new PageMissingError(path, cause);
  }
  return text;
}
