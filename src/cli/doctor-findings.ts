/** Findings of `headgate doctor`: the fault, how it shows, its cause, and what to change. */

export interface Finding {
  /** One word for it, which stays the same: for scripts, and for the docs. */
  readonly id: string;
  readonly severity: 'problem' | 'warning';
  readonly finding: string;
  readonly evidence: string;
  readonly cause: string;
  readonly change: string;
}

export function problem(
  id: string,
  finding: string,
  evidence: string,
  cause: string,
  change: string,
): Finding {
  return { id, severity: 'problem', finding, evidence, cause, change };
}

export function warning(
  id: string,
  finding: string,
  evidence: string,
  cause: string,
  change: string,
): Finding {
  return { ...problem(id, finding, evidence, cause, change), severity: 'warning' };
}

export function findingText({ id, severity, finding, evidence, cause, change }: Finding): string {
  return [
    `${severity.toUpperCase()} ${finding} [${id}]`,
    `  evidence: ${evidence}`,
    `  cause:    ${cause}`,
    `  change:   ${change}`,
    '',
  ].join('\n');
}
