/** The `options` of a startup packet: `-c name=value` and `--name=value`, as PostgreSQL reads them. */

export type StartupOptions =
  | { readonly settings: ReadonlyMap<string, string>; readonly problem?: undefined }
  | { readonly settings?: undefined; readonly problem: string };

export function parseStartupOptions(options: string): StartupOptions {
  const settings = new Map<string, string>();
  const words = split(isFormEncoded(options) ? options.replaceAll('+', ' ') : options);
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    let setting: string | undefined;
    if (word === '-c') setting = words[++at];
    else if (word.startsWith('-c')) setting = word.slice(2);
    else if (word.startsWith('--')) setting = word.slice(2);
    const equals = setting?.indexOf('=') ?? -1;
    if (setting === undefined || equals <= 0) return { problem: `invalid command-line argument: ${word}` };
    // Dashes in a name stand for underscores.
    settings.set(setting.slice(0, equals).replaceAll('-', '_').trim(), setting.slice(equals + 1));
  }
  return { settings };
}

/** Some clients take `options` from a URL, where a plus may stand for a space; before a name it can't be part of the name. */
function isFormEncoded(options: string): boolean {
  return /^\+*-c\+/.test(options);
}

/** Splits at spaces; a backslash escapes the next character. */
function split(options: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < options.length; at++) {
    const character = options[at] as string;
    if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === '\\' && at + 1 < options.length) {
      word = (word ?? '') + options[++at];
    } else word = (word ?? '') + character;
  }
  if (word !== undefined) words.push(word);
  return words;
}
