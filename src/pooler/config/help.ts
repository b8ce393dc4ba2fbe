/** Help for the options of `headgate serve`, by section. */
import { defaultOf, flagOf, meaningOf, type OptionGroup } from './option.js';
import { optionTable, type SectionName, sectionTitles } from './option-table.js';

const column = 38;
const width = 120;

export function optionsHelp(): string {
  return (Object.entries(optionTable) as [SectionName, OptionGroup][])
    .map(([section, group]) => {
      const lines = Object.values(group).map((option) => {
        const { placeholder } = option.kind;
        const flag = placeholder === undefined ? flagOf(option) : `${flagOf(option)} ${placeholder}`;
        return helpLine(flag, `${meaningOf(option)} (${shortened(defaultOf(option))})`);
      });
      return `${sectionTitles[section]}:\n${lines.join('\n')}`;
    })
    .join('\n\n');
}

function shortened(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 37)}...`;
}

/** A flag and its meaning, on as many lines as needed. */
export function helpLine(flag: string, meaning: string): string {
  const lines = [''];
  for (const word of meaning.split(' ')) {
    const line = lines.at(-1) as string;
    if (line !== '' && line.length + word.length + 1 > width - column) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  const indented = lines.map((line) => `${' '.repeat(column)}${line}`).join('\n');
  const first = `  ${flag} `;
  // A long flag has a line to itself.
  return first.length > column ? `  ${flag}\n${indented}` : first + indented.slice(first.length);
}
