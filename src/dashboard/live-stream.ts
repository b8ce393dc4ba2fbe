/** One page that watches: frames as server-sent events, for as long as its session holds. */
import type { ServerResponse } from 'node:http';
import { mayLast } from '../net/http-connections.js';
import { pageHeaders } from './http-answers.js';
import type { Watch } from './watch.js';

/** A reader with so much on its way is skipped until it has caught up. */
const mostUnsent = 512 * 1_024;
const beatMs = 15_000;
/** Beats after which a reader that has not caught up is disconnected. */
const mostBeatsBehind = 4;

/** `isAllowed` is asked before each event: after a logout nothing more is sent. */
export function streamTo(response: ServerResponse, watch: Watch, isAllowed: () => boolean): void {
  response.writeHead(200, {
    ...pageHeaders,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // A proxy that collects answers would show nothing.
    'x-accel-buffering': 'no',
  });
  mayLast(response);
  const check = (): boolean => {
    if (isAllowed()) return true;
    response.end('event: over\ndata: {}\n\n');
    return false;
  };
  const leave = watch.join((frame) => {
    if (!check() || response.writableLength > mostUnsent) return false;
    response.write(`data: ${frame}\n\n`);
    return true;
  });
  let beatsBehind = 0;
  const beat = setInterval(() => {
    beatsBehind = response.writableLength > mostUnsent ? beatsBehind + 1 : 0;
    if (beatsBehind > mostBeatsBehind) response.destroy();
    else if (check()) response.write(': still here\n\n');
  }, beatMs).unref();
  response.once('close', () => {
    clearInterval(beat);
    leave();
  });
}
