// What the documentation prints for the shell, for configuration files and as data: its options, scripts, files and settings exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadModule, parseSync } from 'libpg-query';
import { beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { runCommand } from '../../src/cli/commands.js';
import { dsqlVariables } from '../../src/dsql/variables.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { load } from '../pooler/config/config-files.js';

// Commands read their options as they do, and then do nothing.
const understood = vi.hoisted(() => 'understood');
vi.mock('../../src/cli/options.js', async (importOriginal) => {
  const options = await importOriginal<typeof import('../../src/cli/options.js')>();
  const { UsageError: Understood } = await import('../../src/cli/usage-error.js');
  return {
    ...options,
    readOptions: (...args: Parameters<typeof options.readOptions>) => {
      options.readOptions(...args);
      throw new Understood(understood);
    },
    readCommandLine: (...args: Parameters<typeof options.readCommandLine>) => {
      const { mistakes } = options.readCommandLine(...args);
      throw new Understood(mistakes.length === 0 ? understood : mistakes.join('; '));
    },
  };
});

beforeAll(() => loadModule());

const root = join(import.meta.dirname, '../..');
const { scripts, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
  version: string;
};
const pages = ['README.md', 'CONTRIBUTING.md', ...below('docs'), ...below('examples')];

interface Snippet {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

const snippets: readonly Snippet[] = pages.flatMap((page) =>
  Array.from(
    readFileSync(join(root, page), 'utf8').matchAll(/^ *```(\w+)\n([\s\S]*?)^ *```$/gm),
    ([, language = '', text = '']) => ({ page, language, text }),
  ),
);

function of(language: string): (readonly [name: string, snippet: Snippet])[] {
  return snippets
    .filter((snippet) => snippet.language === language)
    .map((snippet) => [`${snippet.page}: ${snippet.text.split('\n')[0]}`, snippet] as const);
}

/** Programs of others, whose options are not checked. */
const foreign = 'psql pg_dump curl export unset umask useradd install systemctl tail jq cd tsc prisma'.split(
  ' ',
);

test('All snippets are in languages that a test reads', () => {
  const read = ['js', 'ts', 'sh', 'yaml', 'json', 'sql', 'promql'];
  // Python is run by the tests of the stand-in, and the one .npmrc is compared with that of its example.
  const readElsewhere = ['python', 'ini'];
  const languages = new Set(snippets.map(({ language }) => language));
  expect(
    [...languages].filter((language) => ![...read, ...readElsewhere, 'text'].includes(language)),
  ).toEqual([]);
});

test.each(of('sh'))('a shell snippet %s', async (_name, { page, text }) => {
  expect(await problemsOf(page, text)).toEqual([]);
});

test('a shell snippet is refused if it has a wrong option, script, file, variable, version or program', async () => {
  const wrong = [
    'headgate serve --confg a.yaml',
    'AWS_REGION=x npx --no headgate dsql lnt migrations/ | tail -n 1',
    'npm run bild && npm test',
    'node examples/basic/mian.mjs',
    'npm install ./headgate-9.9.9.tgz pg',
    'DSQL_RESERVOIR_ENABELD=true',
    'export TOKEN="$(headgate dsql-local token --hots a)"',
    'frobnicate now',
  ];
  for (const line of wrong) expect(await problemsOf('README.md', line), line).toHaveLength(1);
});

/**
 * The first comment says what it is: a whole `headgate.yaml`, a part of one, a scenario, or a part of a workflow. A part of
 * a configuration has to be good with the least that any configuration has.
 */

test.each(of('yaml'))('a YAML snippet %s', async (_name, { page, text }) => {
  if (/^# (?:part of )?headgate\.yaml\n/.test(text)) {
    const isPart = text.startsWith('# part of');
    const least = { databases: 'databases: { app: { host: db.example } }', auth: 'auth: { type: trust }' };
    const missing = Object.entries(least).filter(([name]) => !new RegExp(`^${name}:`, 'm').test(text));
    const whole = isPart ? [...missing.map(([, line]) => line), text].join('\n') : text;
    const environment = {
      APP_DB_PASSWORD: 'x',
      PAGE_VIEWER_PASSWORD: 'x',
      AWS_REGION: 'us-east-1',
      OTLP_HEADERS: 'api-key=x',
    };
    expect(load(whole, { readsFiles: false, environment }).warnings).toEqual([]);
  } else if (text.startsWith('# part of a workflow'))
    for (const { run } of parse(text) as { run: string }[]) expect(await problemsOf(page, run)).toEqual([]);
  else expect(parseScenario(text).services.length).toBeGreaterThan(0);
});

test.each(of('json'))('a JSON snippet is JSON: %s', (_name, { text }) => {
  expect(() => JSON.parse(text) as unknown).not.toThrow();
});

test.each(of('sql'))('an SQL snippet is SQL: %s', (_name, { text }) => {
  expect(() => parseSync(text)).not.toThrow();
});

async function problemsOf(page: string, text: string): Promise<string[]> {
  const problems: string[] = [];
  for (const words of commandsOf(text)) problems.push(...(await problemsWith(page, words)));
  return problems;
}

/** The words of each command, without comments. */
function commandsOf(text: string): string[][] {
  const commands: string[][] = [];
  for (const line of text.replaceAll(/\\\n\s*/g, ' ').split('\n')) {
    for (const [, inner = ''] of line.matchAll(/\$\(([^)]*)\)/g)) commands.push(...commandsOf(inner));
    let words: string[] = [];
    for (const [word] of line.matchAll(/#.*|&&|[|>]|(?:"(?:\\.|[^"])*"|'[^']*'|\$\([^)]*\)|[^\s|>"'])+/g)) {
      if (word.startsWith('#')) break;
      if (/^(?:&&|[|>])$/.test(word)) {
        commands.push(words);
        words = [];
      } else words.push(word.replaceAll(/["']/g, ''));
    }
    commands.push(words);
  }
  return commands.filter((words) => words.length > 0);
}

async function problemsWith(page: string, words: readonly string[]): Promise<string[]> {
  const [first = '', ...rest] = words;
  const [, variable] = /^(\w+)=/.exec(first) ?? [];
  if (variable !== undefined) {
    const isUnknown = variable.startsWith('DSQL_') && !dsqlVariables.some(({ name }) => name === variable);
    return [
      ...(isUnknown ? [`no variable ${variable}`] : []),
      ...(rest.length > 0 ? await problemsWith(page, rest) : []),
    ];
  }
  switch (first) {
    case 'runuser':
      return problemsWith(page, rest.slice(rest.indexOf('--') + 1));
    case 'npx':
      return problemsWith(page, rest[0] === '--no' ? rest.slice(1) : [(rest[0] ?? '').replace(/@.*/, '')]);
    case 'headgate':
      return problemsWithHeadgate(rest);
    case 'npm':
      return problemsWithNpm(page, rest);
    case 'node':
      return missing(page, rest[0] ?? '');
    default:
      return foreign.includes(first) || /^[\w-]+$/.test(first) === false ? [] : [`no program ${first}`];
  }
}

async function problemsWithHeadgate(args: readonly string[]): Promise<string[]> {
  const texts: string[] = [];
  const say = (text: string): void => void texts.push(text);
  await runCommand(args, { out: say, err: say, hasColours: false, showsProgress: false });
  const said = texts.join('');
  return said === `headgate: ${understood}\n` || args[0] === '--version' ? [] : [said];
}

function problemsWithNpm(page: string, [action = '', ...rest]: readonly string[]): string[] {
  if (['ci', 'pack'].includes(action)) return [];
  if (action === 'install')
    return rest
      .filter((name) => /headgate-[\d.]+\.tgz$/.test(name) && !name.endsWith(`headgate-${version}.tgz`))
      .map((name) => `${name} is not of version ${version}`);
  const script = action === 'run' ? (rest[0] ?? '') : action;
  const files = rest.filter((word) => /^test\//.test(word)).flatMap((file) => missing(page, file));
  return [...(Object.hasOwn(scripts, script) ? [] : [`no script ${script}`]), ...files];
}

function missing(page: string, file: string): string[] {
  return [root, dirname(join(root, page))].some((folder) => existsSync(join(folder, file)))
    ? []
    : [`no file ${file}`];
}

function below(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort();
}
