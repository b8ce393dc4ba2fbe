// The tables of docs/pooler-configuration.md, as the table of options says them.
import {
  type AnyOption,
  defaultOf,
  flagOf,
  meaningOf,
  reloadTexts,
  variableOf,
} from '../../../src/pooler/config/option.js';
import {
  allOptions,
  type EntryKind,
  entryOptions,
  type SectionName,
} from '../../../src/pooler/config/option-table.js';
import { leftOutOptions } from '../../../src/pooler/config/pgbouncer-left-out.js';

/** One section's settings. */
export function settingRows(section: SectionName): string[] {
  return allOptions
    .filter((listed) => listed.section === section)
    .map(({ key, option }) => {
      const names = [code(key), code(flagOf(option)), code(variableOf(option))];
      return row(
        ...names,
        option.kind.name,
        usualOf(option),
        reloadTexts[option.reload].column,
        plain(meaningOf(option)),
      );
    });
}

/** The settings of a database or a user. */
export function entryRows(kind: EntryKind): string[] {
  return entryOptions(kind).map(([key, option]) => {
    const usual = option.meaning.startsWith('in place of') ? '' : usualOf(option);
    return row(
      code(key),
      code(option.name),
      option.kind.name,
      usual,
      reloadTexts[option.reload].column,
      plain(option.meaning),
    );
  });
}

/** The options of [pgbouncer], in the order of their names. */
export function iniRows(): string[] {
  const carried = allOptions.flatMap(({ path, option }): [string, string, string][] => {
    if (option.pgbouncer === undefined) return [];
    return [[option.pgbouncer.name ?? option.name, code(path), noteOn(option)]];
  });
  const left = Object.entries(leftOutOptions).map(([name, why]): [string, string, string] => [
    name,
    '',
    `left out: ${why}`,
  ]);
  return [...carried, ...left]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, to, note]) => row(code(name), to, plain(note)));
}

/** The keys of the other sections. */
export function iniEntryRows(): string[] {
  const of = (kind: EntryKind) =>
    entryOptions(kind).flatMap(([key, option]) =>
      option.pgbouncer === undefined
        ? []
        : [row(`[${kind}]`, code(option.name), code(`${kind}.NAME.${key}`), plain(noteOn(option)))],
    );
  return [
    ...of('databases'),
    row(
      '[databases]',
      code('reserve_pool'),
      code('databases.NAME.reservePoolSize'),
      'another name of reserve_pool_size',
    ),
    ...of('users'),
    row('[peers]', 'all', '`listen.peers`', ''),
  ];
}

/** Where our default is another one than PgBouncer's, and why. */
export function defaultRows(): string[] {
  const all = [
    ...allOptions.map(({ path, option }) => ({ path, option })),
    ...entryOptions('databases').map(([key, option]) => ({ path: `databases.NAME.${key}`, option })),
  ];
  return all.flatMap(({ path, option }) => {
    const other = option.pgbouncer?.otherDefault;
    return other === undefined
      ? []
      : [row(code(path), usualOf(option), code(other.ini || 'none'), plain(other.why))];
  });
}

function noteOn({ pgbouncer = {} }: AnyOption): string {
  const { difference, otherDefault, zeroIsUnset } = pgbouncer;
  const notes = difference === undefined ? [] : [difference];
  if (zeroIsUnset) notes.push('0, which stands for what holds for all, is left out');
  if (otherDefault !== undefined) notes.push(`its default, ${otherDefault.ini || 'none'}, is written out`);
  return notes.join('; ') || 'the same';
}

/** Words are not code, and neither is what 0 stands for. */
function usualOf(option: AnyOption): string {
  if (option.defaultText !== undefined) return plain(option.defaultText);
  const [, words] = /^0 \((.*)\)$/.exec(defaultOf(option)) ?? [];
  return words === undefined ? code(defaultOf(option)) : `\`0\` (${words})`;
}

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |');
}

function code(text: string): string {
  return `\`${text}\``;
}

/** Nothing in it means something to Markdown. */
function plain(text: string): string {
  return text.replaceAll('<', '&lt;').replaceAll('*', '\\*').replaceAll('|', '\\|');
}
