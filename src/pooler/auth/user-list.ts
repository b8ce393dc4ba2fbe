/**
 * File of users and their secrets, in PgBouncer's format (`userlist.txt`): each line has "user" "secret", each in double
 * quotes, with quotes inside doubled. The rest of the line is ignored; a line that begins with ; is a comment.
 */
import { type FileContent, type FileProblem, fileContent } from './file-problem.js';
import { isBrokenScramSecret, isSameStored, parseSecret, type Secret } from './secret.js';

/** Secrets by user. A user with an empty secret has none, and can't log in with a password. */
export type UserList = ReadonlyMap<string, Secret | undefined>;

const quoted = /^\s*"((?:[^"]|"")*)"/;

/** No problem's text quotes a secret. */
export function parseUserList(text: string): FileContent<UserList> {
  const users = new Map<string, Secret | undefined>();
  const problems: FileProblem[] = [];
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  for (const [index, content] of lines.entries()) {
    const line = index + 1;
    if (/^\s*(?:;|$)/.test(content)) continue;
    const entry = readLine(content);
    const message = typeof entry === 'string' ? entry : addUser(users, entry);
    if (message !== undefined) problems.push({ line, message });
  }
  return fileContent(users, problems);
}

interface Entry {
  readonly user: string;
  readonly secret: string;
}

/** The entry, or the problem. */
function readLine(content: string): Entry | string {
  const user = quoted.exec(content);
  if (user === null)
    return content.trimStart().startsWith('"')
      ? 'the name of the user has no closing quote'
      : 'a line begins with the name of a user in double quotes';
  const rest = content.slice(user[0].length);
  const secret = quoted.exec(rest);
  if (secret === null)
    return rest.trimStart().startsWith('"')
      ? 'the secret has no closing quote'
      : 'behind the name of the user, its secret in double quotes is missing';
  return { user: unquote(user[1]), secret: unquote(secret[1]) };
}

function addUser(users: Map<string, Secret | undefined>, entry: Entry): string | undefined {
  const { user, secret: text } = entry;
  if (user === '') return 'the name of the user is empty';
  const name = `the user "${user}"`;
  if (isBrokenScramSecret(text)) return `${name} has a secret that looks like SCRAM and is incomplete`;
  const secret = text === '' ? undefined : parseSecret(text);
  if (users.has(user) && !isSameStored(users.get(user), secret))
    return `${name} stands here twice, with different secrets`;
  users.set(user, secret);
  return undefined;
}

function unquote(text = ''): string {
  return text.replaceAll('""', '"');
}
