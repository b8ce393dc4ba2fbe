/** Warns once if a program has two copies of pg: settings of one do not apply to the other. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { ownRequire } from '../runtime/own-location.js';
import { warn } from '../runtime/warn.js';

let isDone = false;

/** For pools that take their clients from Headgate's copy; pools with their own `Client` have chosen. */
export function warnOfOtherCopies(): void {
  if (isDone) return;
  isDone = true;
  const own = resolvePg(() => ownRequire);
  if (own === undefined) return; // Part of a bundle, with the copy that the bundler chose.
  const other = copiesOfProgram().find((file) => file !== own);
  if (other === undefined) return;
  warn(
    'HG_TWO_COPIES_OF_PG',
    `Two copies of pg are in this program: Headgate uses ${describe(own)}, the program has ${describe(other)}. ` +
      'Type parsers (pg.types) and pg.defaults that are set on the other copy do not apply to the clients of this pool, and its ' +
      'clients are no instances of that copy\'s classes. Keep one copy ("npm ls pg" shows them, "npm dedupe" may do it), or give the ' +
      "pool the other's client: new Pool({ Client: pg.Client }).",
  );
}

/** The copy that the program itself would load, and those already loaded. */
function copiesOfProgram(): string[] {
  const main = process.argv[1];
  const found = main === undefined ? undefined : resolvePg(() => createRequire(main));
  const loaded = Object.keys(ownRequire.cache).filter((file) =>
    /[\\/]node_modules[\\/]pg[\\/]lib[\\/]index\.js$/.test(file),
  );
  return found === undefined ? loaded : [found, ...loaded];
}

function resolvePg(require: () => NodeJS.Require): string | undefined {
  try {
    return require().resolve('pg');
  } catch {
    return undefined;
  }
}

/** `8.23.1 (/app/node_modules/pg)` */
function describe(file: string): string {
  const folder = join(dirname(file), '..');
  try {
    const { version } = ownRequire(join(folder, 'package.json')) as { readonly version: string };
    return `${version} (${folder})`;
  } catch {
    return folder;
  }
}
