// What is where the pid file is to be: nothing, a file of a process, a link, a pipe, a device, a folder, or somebody's file.
import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PidFile } from '../../src/cli/pid-file.js';

const isUnix = process.platform !== 'win32';
const own = `${process.pid}\n`;

function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pid-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'p.pid');
  const start = (): void => {
    const file = new PidFile(path);
    file.refuseIfTaken();
    file.write();
  };
  return { folder, path, start, end: () => new PidFile(path).remove() };
}

/** The number of a process that has ended. */
function deadProcess(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

test.each([
  ['nothing', undefined],
  ['an empty file', ''],
  ['the number of a process that has ended', `${deadProcess()}\n`],
  ['the number of this process, as in a container that was started anew', own],
])('a pid file is written over %s, and removed at the end', (_what, before) => {
  const { folder, path, start, end } = stage();
  if (before !== undefined) writeFileSync(path, before);
  start();
  expect(readFileSync(path, 'utf8')).toBe(own);
  end();
  expect(readdirSync(folder)).toEqual([]);
});

test('a pid file of a process that is alive stays, and the error names both', () => {
  const { path, start, end } = stage();
  writeFileSync(path, `${process.ppid}\n`);
  expect(start).toThrow(`The process ${process.ppid} runs, and its number is in ${path}.`);
  end();
  expect(readFileSync(path, 'utf8')).toBe(`${process.ppid}\n`);
});

test('a pid file that another process has written since stays at the end', () => {
  const { path, start, end } = stage();
  start();
  writeFileSync(path, '1\n');
  end();
  expect(readFileSync(path, 'utf8')).toBe('1\n');
});

test.each(['root:x:0:0', '12 monkeys', '-1', '0', '1'.repeat(40)])(
  'a pid file is not written over a file that has %j in it',
  (text) => {
    const { folder, path, start, end } = stage();
    writeFileSync(path, text);
    expect(start).toThrow('something else is there');
    end();
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(folder)).toEqual(['p.pid']);
  },
);

test.skipIf(!isUnix).each([
  ['a file with text', 'precious'],
  ['the pid file of this process', own],
  ['the pid file of a process that is alive', `${process.ppid}\n`],
])('a pid file replaces a link to %s, and leaves that alone', (_what, text) => {
  const { folder, path, start, end } = stage();
  const target = join(folder, 'target');
  writeFileSync(target, text);
  symlinkSync(target, path);
  start();
  expect(lstatSync(path).isFile()).toBe(true);
  expect([readFileSync(path, 'utf8'), readFileSync(target, 'utf8')]).toEqual([own, text]);
  end();
  expect(readdirSync(folder)).toEqual(['target']);
});

test.skipIf(!isUnix)('a pid file follows no link under the name that it is first written under', () => {
  const { folder, path, start } = stage();
  const target = join(folder, 'target');
  writeFileSync(target, 'precious');
  symlinkSync(target, `${path}.${process.pid}`);
  start();
  expect([readFileSync(path, 'utf8'), readFileSync(target, 'utf8')]).toEqual([own, 'precious']);
});

test.skipIf(!isUnix).each([
  ['a pipe', (path: string) => spawnSync('mkfifo', [path])],
  ['a folder', (path: string) => mkdirSync(path)],
])('a pid file is not written over %s, and does not wait for it', (_what, make) => {
  const { folder, path, start, end } = stage();
  make(path);
  expect(start).toThrow('something else is there');
  end();
  expect(readdirSync(folder)).toEqual(['p.pid']);
});

test.skipIf(process.getuid?.() !== 0)('a pid file is not written over a device', (context) => {
  const { path, start } = stage();
  // As /dev/null is.
  context.skip(spawnSync('mknod', [path, 'c', '1', '3']).status !== 0, 'no devices can be made here');
  expect(start).toThrow('something else is there');
  expect(lstatSync(path).isCharacterDevice()).toBe(true);
});

test('a pid file that can not be written is told with its path', () => {
  const { folder, path } = stage();
  const file = new PidFile(join(folder, 'nowhere', 'p.pid'));
  file.refuseIfTaken();
  expect(() => file.write()).toThrow(/The pid file .*nowhere.p\.pid can't be written: ENOENT/);
  mkdirSync(`${path}.${process.pid}`);
  expect(() => new PidFile(path).write()).toThrow(`The pid file ${path} can't be written: `);
});
