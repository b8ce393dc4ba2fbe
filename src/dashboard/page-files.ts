/** The files of the page, as `npm run build` made them: read once, and served from memory. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';
import { packagePath } from '../runtime/own-location.js';
import { HttpError, pageHeaders } from './http-answers.js';

interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly packed: Buffer;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

let files: ReadonlyMap<string, PageFile> | undefined;

function loadFiles(): ReadonlyMap<string, PageFile> {
  const folder = packagePath('dist/page/');
  const loaded = new Map<string, PageFile>();
  if (!hasPage(folder)) return loaded;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const plain = readFileSync(path);
    loaded.set(`/${relative(folder, path).split(sep).join('/')}`, { type, plain, packed: gzipSync(plain) });
  }
  return loaded;
}

function hasPage(folder: string): boolean {
  return statSync(join(folder, 'index.html'), { throwIfNoEntry: false })?.isFile() === true;
}

/** Throws an `HttpError` where there is no such file. */
export function servePageFile(path: string, accepts: string | undefined, response: ServerResponse): void {
  if (files === undefined || files.size === 0) files = loadFiles();
  if (files.size === 0)
    throw new HttpError(503, 'The page was not built: run "npm run build" in the folder of Headgate.');
  const file = files.get(path === '/' ? '/index.html' : path);
  if (file === undefined) throw new HttpError(404, 'There is no such file.');
  const isPacked = /\bgzip\b/.test(accepts ?? '');
  const body = isPacked ? file.packed : file.plain;
  // Names of assets change with what is in them.
  const isNamedByContent = path.startsWith('/assets/');
  response.writeHead(200, {
    ...pageHeaders,
    'content-type': file.type,
    'content-length': body.length,
    'cache-control': isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
    ...(isPacked && { 'content-encoding': 'gzip' }),
  });
  response.end(body);
}
