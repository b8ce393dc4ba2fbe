/** Writes names and strings as SQL. */

/** One name, without a qualifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** For a server with `standard_conforming_strings`, as Aurora DSQL always is. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Correct with either value of `standard_conforming_strings`. */
export function literal(text: string): string {
  const quoted = quoteText(text);
  return quoted.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}
