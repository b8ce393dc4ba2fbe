// One way to read the command line of every command: the same forms, and the same words for the same mistakes.
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import { type OptionKind, readCommandLine } from '../../src/cli/options.js';

const kinds = new Map<string, OptionKind>([
  ['name', 'text'],
  ['folder', 'value'],
  ['quiet', 'flag'],
  ['log', 'switch'],
]);
const shorts = { n: 'name', q: 'quiet', v: 'name=verbose' };

function read(...args: string[]) {
  const { values, positionals, mistakes } = readCommandLine(args, kinds, shorts);
  return { values: Object.fromEntries(values), positionals: [...positionals], mistakes: [...mistakes] };
}

test.each<[string[], Record<string, string[]>, string[]]>([
  [['--name', 'a', 'b'], { name: ['a'] }, ['b']],
  [['--name=a=b', '--name', '-1'], { name: ['a=b', '-1'] }, []],
  [['--name=--quiet'], { name: ['--quiet'] }, []],
  [['--folder=', '--quiet'], { folder: [''], quiet: ['true'] }, []],
  [['--log', '--no-log', '--log=off'], { log: ['true', 'false', 'off'] }, []],
  [['--quiet', '--', '--name', '-q'], { quiet: ['true'] }, ['--name', '-q']],
  [['-qn', 'a', '-nb', '-v'], { quiet: ['true'], name: ['a', 'b', 'verbose'] }, []],
  [['-'], {}, ['-']],
])('readCommandLine() reads %j', (args, values, positionals) => {
  expect(read(...args)).toEqual({ values, positionals, mistakes: [] });
});

test('readCommandLine() tells all mistakes, and the option that was most likely meant', () => {
  expect(read('--nam', '--name', '--log', '--quiet=1', '--no-log=1', '--no-quiet', '-x', '--name=')).toEqual({
    values: { log: ['true'] },
    positionals: [],
    mistakes: [
      '--nam is not an option; did you mean --name?',
      '--name needs a value',
      "--quiet has no value, but got '1'",
      "--no-log has no value, but got '1'",
      '--no-quiet is not an option',
      '-x is not an option',
      '--name needs a value',
    ],
  });
});

test('readCommandLine() repeats no more than the beginning of a long text, and knows no inherited names', () => {
  expect(read(`--${'x'.repeat(100)}`).mistakes).toEqual([`--${'x'.repeat(38)} is not an option`]);
  expect(read('--__proto__', '--constructor=1').mistakes).toEqual([
    '--__proto__ is not an option',
    '--constructor is not an option',
  ]);
});

async function run(...args: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const code = await runCommand(args, {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    hasColours: false,
    showsProgress: false,
  });
  return { code, out: out.join(''), err: err.join('') };
}

const commands: readonly (readonly [command: string, wrong: string, meant: string, withValue: string])[] = [
  ['serve', '--confg', '--config', '--listen-port'],
  ['pgbouncer', '--dameon', '--daemon', '--user'],
  ['top', '--intervall', '--interval', '--url'],
  ['doctor', '--jsn', '--json', '--url'],
  ['import', '--outptu', '--output', '--output'],
  ['simulate', '--sed', '--seed', '--seed'],
  ['dynamodb', '--tabel', '--table', '--table'],
  ['dsql lint', '--strickt', '--strict', '--format'],
  ['dsql convert', '--quite', '--quiet', '--output'],
  ['dsql migrate', '--dry-rum', '--dry-run', '--target'],
  ['dsql-local', '--prot', '--port', '--port'],
  ['dsql-local token', '--expire', '--expires', '--host'],
];

describe.each(commands)('headgate %s', (command, wrong, meant, withValue) => {
  const words = command.split(' ');

  test('a command with a wrong option ends with 2 and names the option that was meant', async () => {
    expect(await run(...words, wrong)).toEqual({
      code: 2,
      out: '',
      err: `headgate: ${wrong} is not an option; did you mean ${meant}?\n`,
    });
  });

  test.each([[withValue], [withValue, '--']])(
    'a command with a wrong option ends with 2 where an option has no value: %j',
    async (...args) => {
      const { code, err } = await run(...words, ...args);
      expect([code, err.split('\n')[0]]).toEqual([2, `headgate: ${withValue} needs a value`]);
    },
  );

  test('the command explains itself with --help', async () => {
    const { code, out, err } = await run(...words, wrong, '--help');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^Usage: headgate /);
    expect(out).toContain(`headgate ${command}`);
  });
});

test.each([
  [['sevre'], "headgate: there is no command 'sevre'. Did you mean serve? See headgate --help.\n"],
  [['dsql', 'lnt'], "headgate: dsql needs one of lint, convert, migrate, not 'lnt'. Did you mean lint?\n"],
])('headgate %j ends with 2 and names the command that was meant', async (args, err) => {
  expect(await run(...args)).toEqual({ code: 2, out: '', err });
});
