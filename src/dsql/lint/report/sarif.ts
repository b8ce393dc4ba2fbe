/** Open findings as SARIF 2.1.0, for code scanning. */
import type { LintFinding } from '../findings.js';
import { lintRules } from '../rules.js';
import type { LintResult } from './lint-result.js';

/** `version` is Headgate's. */
export function sarifReport({ files }: LintResult, version: string): string {
  const driver = {
    name: 'headgate dsql lint',
    version,
    informationUri: 'https://www.npmjs.com/package/headgate',
    rules: lintRules.map(({ id, severity, reason, advice, url, fix }) => ({
      id,
      shortDescription: { text: reason },
      help: { text: advice },
      helpUri: url,
      defaultConfiguration: { level: severity },
      properties: { fix: fix ?? 'by hand' },
    })),
  };
  const results = files.flatMap(({ file, findings }) =>
    findings.filter(({ status }) => status !== 'fixed').map((finding) => resultOf(file, finding)),
  );
  const run = { tool: { driver }, columnKind: 'unicodeCodePoints', results };
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [run],
  };
  return `${JSON.stringify(log, undefined, 2)}\n`;
}

function resultOf(file: string, finding: LintFinding) {
  const { rule, severity, message, advice, line, column, endLine, endColumn } = finding;
  const isEmpty = line === endLine && endColumn <= column;
  const end = isEmpty ? {} : { endLine, endColumn };
  return {
    ruleId: rule,
    ruleIndex: lintRules.findIndex(({ id }) => id === rule),
    level: severity,
    message: { text: `${message}. ${advice}` },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file) },
          region: { startLine: line, startColumn: column, ...end },
        },
      },
    ],
  };
}

/** A relative reference; a path of Windows has other separators. */
function uriOf(file: string): string {
  if (file === '-') return 'stdin';
  return file.replaceAll('\\', '/').split('/').map(encodeURIComponent).join('/');
}
