/** Credentials to look and to act: passwords and tokens, compared in a time that tells nothing about them. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

export type PageRole = 'viewer' | 'operator';

/** Credentials of a role. Either may be left out. */
export interface PageSecrets {
  /** May look. */
  readonly viewer?: string | undefined;
  /** May look and act. */
  readonly operator?: string | undefined;
}

const shortestSecret = 8;

export class Credentials {
  readonly #digests: readonly (readonly [PageRole, Buffer])[];
  /** Made at the start where no secret was given; shown once, where the program begins. */
  readonly token: string | undefined;

  constructor({ viewer, operator }: PageSecrets) {
    this.token =
      viewer === undefined && operator === undefined ? randomBytes(24).toString('base64url') : undefined;
    const secrets: [PageRole, string | undefined][] = [
      ['operator', operator ?? this.token],
      ['viewer', viewer],
    ];
    this.#digests = secrets.flatMap(([role, secret]) =>
      secret === undefined ? [] : [[role, digestOf(secret)] as const],
    );
  }

  /** Undefined for a wrong one. All are compared, so that the time tells nothing. */
  roleOf(secret: string): PageRole | undefined {
    const digest = digestOf(secret);
    let found: PageRole | undefined;
    for (const [role, known] of this.#digests) if (timingSafeEqual(known, digest)) found ??= role;
    return found;
  }
}

/** Problems of the secrets that are to be used; empty: none. */
export function secretProblems({ viewer, operator }: PageSecrets): string[] {
  const problems: string[] = [];
  for (const [name, secret] of [['viewer', viewer] as const, ['operator', operator] as const])
    if (secret !== undefined && secret.length < shortestSecret)
      problems.push(`The password of the ${name} must have at least ${shortestSecret} characters.`);
  if (viewer !== undefined && viewer === operator)
    problems.push('The passwords of viewer and operator must differ, or viewers could act.');
  return problems;
}

/** Digests have one length, as the comparison needs. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
