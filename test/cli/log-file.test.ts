// A log that can't be written: a full disk, a pipe that nobody reads, a reader that stops. Nothing waits for it, and what is lost is told.
import { type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { LogFile } from '../../src/cli/log-file.js';
import { serveLog } from '../../src/cli/serve-log.js';
import type { PoolerLog } from '../../src/pooler/log.js';

const soon = { timeout: 10_000, interval: 10 };
const hasPipes = process.platform !== 'win32';

/** A log in a file at this path, and nowhere else. */
function open(path: string): { file: LogFile; log: PoolerLog } {
  const file = new LogFile();
  file.use(path);
  onTestFinished(() => file.close());
  const terminal = { out: () => {}, err: () => {}, hasColours: false, showsProgress: false };
  const log = serveLog({ terminal, isQuiet: true, file }, () => ({
    logging: { level: 'info', format: 'text' },
  }));
  return { file, log };
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'headgate-log-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function makePipe(): string {
  const path = join(folder(), 'pipe');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  return path;
}

/** Reads what there is, at once. */
function readerOf(path: string): { read: () => string; close: () => void } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  };
  onTestFinished(close);
  const bytes = Buffer.alloc(1_048_576);
  const read = (): string => {
    let text = '';
    try {
      for (let length = -1; length !== 0; ) {
        length = readSync(fd, bytes);
        text += bytes.toString('latin1', 0, length);
      }
    } catch {
      // Nothing more at the moment.
    }
    return text;
  };
  return { read, close };
}

test.skipIf(!existsSync('/dev/full'))(
  'a log file on a full disk loses lines, and they are counted and told',
  () => {
    const { file, log } = open('/dev/full');
    for (let n = 0; n < 10; n++) log('info', 'a line');
    expect(file.lost).toBe(10);
    const path = join(folder(), 'p.log');
    file.use(path);
    expect(file.lost).toBe(10);
    log('info', 'there is room again');
    log('info', 'another line');
    expect(readFileSync(path, 'utf8').replaceAll(/^.*? UTC /gm, '')).toBe(
      'warn  log lines dropped  lost=10\ninfo  there is room again\ninfo  another line\n',
    );
  },
);

test.skipIf(!hasPipes)(
  'a log file that is a pipe without a reader blocks nothing, and is written again when a reader comes',
  () => {
    const path = makePipe();
    const { file, log } = open(path);
    for (let n = 0; n < 10; n++) log('info', 'a line');
    expect(file.lost).toBe(10);
    const { read, close } = readerOf(path);
    log('info', 'read');
    expect(read()).toMatch(/ warn {2}log lines dropped {2}lost=10\n.* info {2}read\n$/);
    close();
    log('info', 'nobody is there');
    expect(file.lost).toBe(11);
    const next = readerOf(path);
    log('info', 'read again');
    expect(next.read()).toMatch(/^.* warn {2}log lines dropped {2}lost=11\n.* info {2}read again\n$/);
  },
);

test.skipIf(!hasPipes)(
  'a log file that is a pipe whose reader stops keeps a bounded part, drops the rest, and goes on when it reads',
  async () => {
    const path = makePipe();
    const { read } = readerOf(path);
    const { file, log } = open(path);
    const count = 20_000;
    for (let n = 0; n < count; n++) log('info', 'x'.repeat(990), { n });
    const dropped = file.lost;
    // The pipe has 64 kB, and a MB waits.
    expect(dropped).toBeGreaterThan(count - 1_500);
    expect(dropped).toBeLessThan(count);
    let text = '';
    const lines = (): string[] => text.split('\n').filter((line) => line.includes('xxx'));
    await vi.waitFor(() => {
      text += read();
      expect(lines()).toHaveLength(count - dropped);
    }, soon);
    // In order, and each in one piece.
    expect(text.endsWith('\n')).toBe(true);
    lines().forEach(
      (line, n) => void expect(line).toMatch(new RegExp(`^\\d{4}-.* info {2}x{990} {2}n=${n}$`)),
    );
    log('info', 'at last');
    expect(read()).toMatch(new RegExp(`warn {2}log lines dropped {2}lost=${dropped}\n.*info {2}at last\n$`));
    expect(file.lost).toBe(dropped);
  },
);

test.skipIf(!hasPipes)('a line that is longer than a pipe takes at once arrives in one piece', async () => {
  const path = makePipe();
  const { read } = readerOf(path);
  const { file, log } = open(path);
  log('info', 'x'.repeat(300_000));
  log('info', 'next');
  let text = '';
  await vi.waitFor(() => {
    text += read();
    expect(text).toMatch(/ info {2}x{300000}\n.* info {2}next\n$/);
  }, soon);
  expect(file.lost).toBe(0);
});

test('a log file that is a folder is refused, and the log goes on where it was', () => {
  const at = folder();
  const { file, log } = open(join(at, 'p.log'));
  expect(() => file.use(at)).toThrow("can't be opened");
  log('info', 'still there');
  expect(readFileSync(join(at, 'p.log'), 'utf8')).toContain('still there');
});

/** What a process writes on standard output that has its log in `/dev/stderr`. */
async function loggingOnStderr(body: string, stderr: number | 'pipe'): Promise<string> {
  const built = new URL('../../dist/cli/log-file.js', import.meta.url).href;
  const text = `import { LogFile } from ${JSON.stringify(built)}; const file = new LogFile(); ${body}`;
  const stdio: StdioOptions = ['ignore', 'pipe', stderr];
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (more) => {
    out += more;
  });
  await once(child, 'close');
  return out;
}

test.skipIf(!hasPipes)('a log in /dev/stderr whose reader stops does not stop the process', async () => {
  // Both ends: nobody reads, and the pipe has a reader.
  const pipe = openSync(makePipe(), constants.O_RDWR);
  onTestFinished(() => closeSync(pipe));
  const body = `file.use('/dev/stderr'); const line = 'x'.repeat(999) + '\\n';
    for (let n = 0; n < 5000; n++) file.write(line); console.log(file.lost);`;
  expect(Number(await loggingOnStderr(body, pipe))).toBeGreaterThan(3_000);
});

test.skipIf(!hasPipes)(
  'a log in /dev/stderr that is a socket is refused, and the error says what to do',
  async () => {
    const body = "try { file.use('/dev/stderr') } catch (error) { console.log(error.message) }";
    expect(await loggingOnStderr(body, 'pipe')).toContain(
      'without a log file, the log goes to standard error',
    );
  },
);
