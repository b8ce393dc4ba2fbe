// @ts-check
// Reads TypeScript just closely enough to tell code from comments, strings and regular expressions.

/**
 * @typedef {object} ScannedSource
 * @property {string} code the source with comments blanked and each string replaced by its number in quotes: `'3'`.
 *   Line breaks are kept, so that line numbers still hold.
 * @property {string[]} strings the texts of the strings, by number
 */

/** A slash after one of these begins a regular expression; after anything else it divides. */
const beforeRegularExpression =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|delete|void|throw|new))$/;

/**
 * @param {string} source
 * @returns {ScannedSource}
 */
export function scanSource(source) {
  /** @type {string[]} */
  const strings = [];
  /** For each template that is open: how many braces are open in its present `${}`. @type {number[]} */
  const templates = [];
  let code = '';
  let at = 0;

  /** @param {RegExp} pattern a sticky one */
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(source)?.[0] ?? source.charAt(at);
    at += found.length;
    return found;
  };
  /** @param {string} text */
  const blank = (text) => text.replace(/[^\n]/g, ' ');
  /** @param {string} text */
  const quote = (text) => `'${strings.push(text) - 1}'${text.replace(/[^\n]/g, '')}`;
  const takeTemplateText = () => {
    const text = take(/(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)?/y);
    if (text.endsWith('${')) templates.push(0);
    code += `${quote(text.replace(/(?:`|\$\{)$/, ''))}${text.endsWith('${') ? '+(' : ''}`;
  };

  while (at < source.length) {
    const char = source.charAt(at);
    const next = source.charAt(at + 1);
    if (char === '/' && next === '/') code += blank(take(/\/\/[^\n]*/y));
    else if (char === '/' && next === '*') code += blank(take(/\/\*[\s\S]*?\*\//y));
    else if (char === "'" || char === '"') {
      const literal = take(char === "'" ? /'(?:[^'\\\n]|\\[\s\S])*'/y : /"(?:[^"\\\n]|\\[\s\S])*"/y);
      code += quote(literal.slice(1, -1));
    } else if (char === '/' && beforeRegularExpression.test(code.trimEnd().slice(-10))) {
      code += quote(take(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y));
    } else if (char === '`') {
      at += 1;
      takeTemplateText();
    } else if (char === '}' && templates.at(-1) === 0) {
      at += 1;
      templates.pop();
      code += ')+';
      takeTemplateText();
    } else {
      if (templates.length > 0 && (char === '{' || char === '}')) {
        templates[templates.length - 1] = (templates.at(-1) ?? 0) + (char === '{' ? 1 : -1);
      }
      code += take(/[\w$]+|\s+|[\s\S]/y);
    }
  }
  return { code, strings };
}

/**
 * Every module that the source imports or re-exports, or names by `new URL()` for a thread or process, with the line it does so on.
 * @param {ScannedSource} scanned
 * @returns {{ specifier: string, line: number }[]}
 */
export function findImports({ code, strings }) {
  const forms =
    /\b(?:import|export)\b[^'();]*?\bfrom\s*'(\d+)'|\bimport\s*'(\d+)'|\b(?:import|require)\s*\(\s*'(\d+)'/g;
  const urls = /\bnew\s+URL\s*\(\s*'(\d+)'\s*,\s*import\s*\.\s*meta\s*\.\s*url\b/g;
  /** @type {(match: RegExpExecArray) => { specifier: string, line: number }} */
  const found = (match) => ({
    specifier: strings[Number(match[1] ?? match[2] ?? match[3])] ?? '',
    line: lineAt(code, match.index + match[0].length),
  });
  // An address without a dot in front is relative all the same.
  const modules = [...code.matchAll(urls)]
    .map(found)
    .filter(({ specifier }) => /\.[cm]?[jt]s$/.test(specifier))
    .map(({ specifier, line }) => ({ specifier: specifier.replace(/^(?![.:\w]*:|\.)/, './'), line }));
  return [...[...code.matchAll(forms)].map(found), ...modules];
}

/**
 * @param {string} text
 * @param {number} index
 */
export function lineAt(text, index) {
  return text.slice(0, index).split('\n').length;
}
