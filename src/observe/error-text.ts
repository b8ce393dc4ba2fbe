/** An error for the log: its message and its code. Its other properties may hold anything, also secrets. */

/** Longer messages come from servers, and are cut. */
const longest = 1_000;

export function errorFields(error: Error): { readonly error: string; readonly code?: string } {
  const { code } = error as { code?: unknown };
  const word = typeof code === 'string' && code !== '' ? code.slice(0, longest) : undefined;
  // Node has errors without a message, for example for a host whose every address refuses.
  const text = withoutSecrets(String(error.message).slice(0, longest)) || (word ?? error.name);
  return word === undefined ? { error: text } : { error: text, code: word };
}

/** Removes secrets. Messages should have none; these are the forms that a connection string or a token would have. */
function withoutSecrets(text: string): string {
  return text
    .replace(/\S+/g, withoutPassword)
    .replace(/\b(password|X-Amz-[a-z-]{1,40})=(?:'[^']*'|[^\s&]+)/gi, '$1=***');
}

/** A URL without the password before its last `@`. */
function withoutPassword(word: string): string {
  const at = word.lastIndexOf('@');
  return at === -1 ? word : word.slice(0, at).replace(/(:\/\/[^:/@]*):.*/s, '$1:***') + word.slice(at);
}
