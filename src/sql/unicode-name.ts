/** Names that are spelled in code points: U&"d\0061t\+000061". */

const escapes = /\\(?:([0-9a-f]{4})|\+([0-9a-f]{6})|(\\)|)/gi;
const greatest = 0x10_ffff;

/** Decodes the text between the quotes; undefined if PostgreSQL refuses it. */
export function decodeUnicodeName(inside: string): string | undefined {
  let isWrong = false;
  const name = inside.replaceAll(escapes, (_escape, four?: string, six?: string, backslash?: string) => {
    if (backslash !== undefined) return backslash;
    const code = Number.parseInt(four ?? six ?? '', 16);
    // Halves of a pair are put together to something beyond ASCII.
    if (code > 0 && code <= greatest) return String.fromCodePoint(code);
    isWrong = true;
    return '';
  });
  return isWrong ? undefined : name;
}
