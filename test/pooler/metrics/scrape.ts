// Reads a pooler's metrics as Prometheus does.
import { expect } from 'vitest';

export interface Scrape {
  /** By name, what HELP and TYPE say. */
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  readonly lines: readonly SampleLine[];
  /** The one sample of this name with these labels, among others. */
  value(name: string, labels?: Readonly<Record<string, string>>): number;
}

export interface SampleLine {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export async function scrape(port: number): Promise<Scrape> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(await response.text());
}

/** Fails on any line that Prometheus would not understand. */
export function parseMetrics(text: string): Scrape {
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  const lines: SampleLine[] = [];
  expect(text.endsWith('\n')).toBe(true);
  for (const line of text.trimEnd().split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = '', rest = ''] = comment;
      const notes = kind === 'HELP' ? helps : types;
      expect(notes.has(name), `${kind} of ${name} comes once`).toBe(false);
      notes.set(name, rest);
      continue;
    }
    const [, name = '', , inside = '', number = ''] =
      /^([a-z_]+)(\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\})? (\S+)$/.exec(line) ?? [];
    expect(name, `"${line}" is a sample`).not.toBe('');
    const labels = Object.fromEntries(
      Array.from(inside.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g), ([, label = '', word = '']) => [
        label,
        word.replace(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign)),
      ]),
    );
    lines.push({ name, labels, value: number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number) });
  }
  return {
    types,
    helps,
    lines,
    value(name, labels = {}) {
      const found = lines.filter(
        (line) =>
          line.name === name && Object.entries(labels).every(([label, word]) => line.labels[label] === word),
      );
      expect(found, `one ${name} with ${JSON.stringify(labels)}`).toHaveLength(1);
      return found[0]?.value as number;
    },
  };
}
