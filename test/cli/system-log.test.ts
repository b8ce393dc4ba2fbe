// The system's log, of which this file is the reader: one that reads, one that stops, one that goes and comes back.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveLog } from '../../src/cli/serve-log.js';
import { SystemLog } from '../../src/cli/system-log.js';
import { hasSystemCalls } from '../../src/net/system-calls.js';

type Call = (...args: unknown[]) => number;

/** Receives datagrams at this path. `read()` has all that came. */
function reader(path: string): { read: () => string[]; close: () => void } {
  const koffi = createRequire(import.meta.url)('koffi') as {
    load(path: null): { func(prototype: string): Call };
  };
  const library = koffi.load(null);
  const address = Buffer.alloc(110);
  address.writeUInt16LE(1, 0);
  address.write(path, 2);
  const fd = library.func('int socket(int family, int type, int protocol)')(1, 2 | 0o4000, 0);
  expect(
    library.func('int bind(int fd, const uint8_t *address, uint32_t length)')(fd, address, 3 + path.length),
  ).toBe(0);
  const receive = library.func('intptr_t recv(int fd, _Out_ uint8_t *bytes, size_t length, int flags)');
  const closeFd = library.func('int close(int fd)');
  let isOpen = true;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    closeFd(fd);
    rmSync(path, { force: true });
  };
  onTestFinished(close);
  return {
    close,
    read() {
      const lines: string[] = [];
      const bytes = Buffer.alloc(65_536);
      for (;;) {
        const length = Number(receive(fd, bytes, bytes.length, 0));
        if (length < 0) return lines;
        lines.push(bytes.toString('utf8', 0, length));
      }
    },
  };
}

function world() {
  const folder = mkdtempSync(join(tmpdir(), 'hg-syslog-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'log');
  const systemLog = new SystemLog('pooler', 'local0', path);
  onTestFinished(() => systemLog.close());
  const terminal = { out: () => {}, err: () => {}, hasColours: false, showsProgress: false };
  const log = serveLog(
    { terminal, isQuiet: true, systemLog },
    () => ({ logging: { level: 'info', format: 'text' } }),
    () => new Date(2026, 10, 9, 8, 7, 6),
  );
  return { path, systemLog, log };
}

const line = (priority: number, text: string): string =>
  `<${priority}>Nov  9 08:07:06 pooler[${process.pid}]: ${text}`;

test.skipIf(!hasSystemCalls())(
  'a line in the system’s log has its priority, the time, the name and the process',
  () => {
    const { path, log } = world();
    const { read } = reader(path);
    log('info', 'client connected', { user: 'me' });
    log('error', 'no\0 more');
    expect(read()).toEqual([line(134, 'client connected  user=me'), line(131, 'no  more')]);
  },
);

test.skipIf(!hasSystemCalls())(
  'a system log that reads nothing blocks no client, and gets the number of lost lines later',
  () => {
    const { path, systemLog, log } = world();
    const { read } = reader(path);
    for (let n = 0; n < 5_000; n++) log('info', `line ${n}`);
    expect(systemLog.lost).toBeGreaterThan(0);
    expect(read()).toHaveLength(5_000 - systemLog.lost);
    log('info', 'next');
    expect(read()).toEqual([line(132, `log lines dropped  lost=${systemLog.lost}`), line(134, 'next')]);
  },
);

test.skipIf(!hasSystemCalls())(
  'a system’s log that is not there, or that comes back, is written to as soon as it is there',
  () => {
    const { path, systemLog, log } = world();
    log('info', 'nobody');
    expect(systemLog.lost).toBe(1);
    const first = reader(path);
    log('info', 'one');
    expect(first.read()).toEqual([line(132, 'log lines dropped  lost=1'), line(134, 'one')]);
    first.close();
    log('info', 'nobody');
    expect(systemLog.lost).toBe(2);
    const second = reader(path);
    log('info', 'two');
    expect(second.read()).toEqual([line(132, 'log lines dropped  lost=2'), line(134, 'two')]);
  },
);
