// How the pooler stands beside other processes: what is asked of the system, and what is told when it refuses.
import { expect, test } from 'vitest';
import { takePriority } from '../../src/cli/process-priority.js';

test('the priority of the process is left as it is unless something else is asked for', () => {
  const taken: number[] = [];
  const take = (priority: number): void => void taken.push(priority);
  takePriority(0, () => {}, take);
  expect(taken).toEqual([]);
  takePriority(-5, () => {}, take);
  expect(taken).toEqual([-5]);
});

test('the priority of the process is told when the system refuses it, with what it takes', () => {
  const lines: string[] = [];
  const take = (): void => {
    throw new Error('A system error occurred: uv_os_setpriority returned EACCES (permission denied)');
  };
  takePriority(
    -5,
    (level, message, details) => lines.push(`${level}: ${message} ${details?.['error']}`),
    take,
  );
  expect(lines.join('\n')).toMatch(/^warn: the system refuses a process_priority of -5, .*LimitNICE.*EACCES/);
});
