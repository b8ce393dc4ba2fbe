// The kinds of values: what each takes from a file, from a text and from pgbouncer.ini, and how it is shown.
import { expect, test } from 'vitest';
import { Misread } from '../../../src/pooler/config/config-problems.js';
import type { Kind } from '../../../src/pooler/config/kind.js';
import {
  boolean,
  duration,
  fraction,
  integer,
  list,
  oneOf,
  query,
  text,
} from '../../../src/pooler/config/kinds.js';
import {
  endpoint,
  fileMode,
  path,
  ports,
  size,
  tlsProtocols,
} from '../../../src/pooler/config/special-kinds.js';

const context = { folder: '/etc/headgate', environment: {}, readsFiles: true };
const number = integer({ min: 0, max: 100, zero: 'no limit' });
const time = duration('never');
const word = oneOf('one', 'two');
const bytes = size({ min: 1_024, max: 2 ** 31 - 1 });
type AnyKind = Kind<unknown>;

const fromData: [string, AnyKind, unknown, unknown][] = [
  ['text', text, 'x', 'x'],
  ['text', text, '', undefined],
  ['query', query, '', ''],
  ['list', list, ['a', '', 'b'], ['a', 'b']],
  ['list', list, 'a, b,,', ['a', 'b']],
  ['word', word, 'TWO', 'two'],
  ['boolean', boolean, false, false],
  ['integer', number, 100, 100],
  ['duration', time, '1m30s', 90_000],
  ['duration', time, 0, 0],
  ['duration', time, 'off', 0],
  ['fraction', fraction, 0.25, 0.25],
  ['path', path, 'users.txt', '/etc/headgate/users.txt'],
  ['path', path, '/a/b', '/a/b'],
  ['ports', ports, 5433, 5433],
  ['ports', ports, [5433, 5434], [5433, 5434]],
  ['ports', ports, [5433], 5433],
  ['file mode', fileMode, '0700', 0o700],
  ['file mode', fileMode, '660', 0o660],
  ['TLS versions', tlsProtocols, 'secure', { min: 'TLSv1.2', max: 'TLSv1.3' }],
  ['TLS versions', tlsProtocols, 'all', { min: 'TLSv1', max: 'TLSv1.3' }],
  ['TLS versions', tlsProtocols, ['tlsv1.2'], { min: 'TLSv1.2', max: 'TLSv1.2' }],
  ['TLS versions', tlsProtocols, 'all,!tlsv1.0', { min: 'TLSv1.1', max: 'TLSv1.3' }],
  ['size', bytes, 4_096, 4_096],
  ['size', bytes, '4kB', 4_096],
  ['size', bytes, '1GB', 2 ** 30],
  ['address', endpoint, 'localhost:80', { host: 'localhost', port: 80 }],
  ['address', endpoint, 9127, { host: '127.0.0.1', port: 9127 }],
  ['address', endpoint, '', undefined],
];

const refused: [string, AnyKind, unknown][] = [
  ['text', text, 12],
  ['text', text, ['a']],
  ['list', list, [1]],
  ['ports', ports, 0],
  ['ports', ports, []],
  ['ports', ports, [5433, '5434']],
  ['ports', ports, [5433, 65_536]],
  ['list', list, { a: 1 }],
  ['word', word, 'three'],
  ['boolean', boolean, 'true'],
  ['boolean', boolean, 1],
  ['integer', number, 101],
  ['integer', number, 1.5],
  ['integer', number, '1'],
  ['duration', time, 5],
  ['duration', time, '5'],
  ['duration', time, '25d'],
  ['duration without 0', duration(undefined), '0'],
  ['fraction', fraction, 1.1],
  ['file mode', fileMode, 0o777],
  ['file mode', fileMode, '0888'],
  ['TLS versions', tlsProtocols, 'ssl3'],
  ['TLS versions', tlsProtocols, 'constructor'],
  ['TLS versions', tlsProtocols, 'tlsv1.0,tlsv1.3'],
  ['TLS versions', tlsProtocols, ''],
  ['size', bytes, 5],
  ['size', bytes, '3TB'],
  ['address', endpoint, 'localhost'],
  ['address', endpoint, 'localhost:99999'],
];

test.each(fromData)('A value of a configuration file of the kind %s is read (%#)', (_, kind, data, value) => {
  expect(kind.fromData(data, context)).toEqual(value);
});

test.each(refused)('A value of a configuration file that is no %s is refused (%#)', (_, kind, data) => {
  expect(() => kind.fromData(data, context)).toThrow(Misread);
});

test.each<[AnyKind, string, unknown]>([
  [text, 'none', undefined],
  [list, 'a, b', ['a', 'b']],
  [list, 'none', []],
  [boolean, 'Yes', true],
  [boolean, '0', false],
  [number, '7', 7],
  [fraction, '0.5', 0.5],
  [time, '0', 0],
  [path, 'x', '/etc/headgate/x'],
  [endpoint, 'none', undefined],
  [integer({ min: -20, max: 19 }), '-5', -5],
])('A value of a flag or a variable is read (%#)', (kind, written, value) => {
  expect(kind.fromText(written, context)).toEqual(value);
});

test.each<[AnyKind, string]>([
  [boolean, 'maybe'],
  [number, '-1'],
  [number, '1e2'],
  [fraction, '2'],
  [time, '12'],
])('A value of a flag or a variable is refused (%#)', (kind, written) => {
  expect(() => kind.fromText(written, context)).toThrow(Misread);
});

test.each<[AnyKind, string, unknown]>([
  [time, '15', '15s'],
  [time, '3600.0', '1h'],
  [time, '0.5', '500ms'],
  [time, '1e2', '1m40s'],
  [time, '0', 0],
  [boolean, '1', true],
  [boolean, '0', false],
  [number, '010', 8],
  [number, '0x10', 16],
  [number, '-1', -1],
  [fileMode, '0777', '0777'],
  [fileMode, '511', '0777'],
  [list, 'a,b', ['a', 'b']],
  [word, 'One', 'one'],
  [ports, '5433', 5433],
  [ports, '5433, 5434', [5433, 5434]],
  [tlsProtocols, 'tlsv1.2:tlsv1.3', ['tlsv1.2', 'tlsv1.3']],
])('A value of pgbouncer.ini becomes one of a configuration file (%#)', (kind, ini, data) => {
  expect(kind.iniToData(ini)).toEqual(data);
});

test.each<[AnyKind, string]>([
  [time, '15s'],
  [time, '-1'],
  [time, ''],
  [boolean, 'yes'],
  [number, '5x'],
  [number, ''],
  [word, 'three'],
])('A value of pgbouncer.ini is refused where PgBouncer refuses it (%#)', (kind, ini) => {
  expect(() => kind.iniToData(ini)).toThrow(Misread);
});

test.each<[AnyKind, unknown, string, string]>([
  [time, 90_000, '1m30s', '90'],
  [time, 0, '0 (never)', '0'],
  [time, 500, '500ms', '0.5'],
  [number, 0, '0 (no limit)', '0'],
  [boolean, true, 'true', '1'],
  [text, undefined, 'none', ''],
  [list, ['a', 'b'], 'a, b', 'a, b'],
  [ports, [5433, 5434], '5433, 5434', '5433,5434'],
  [fileMode, 0o770, '0770', '0770'],
  [tlsProtocols, { min: 'TLSv1.2', max: 'TLSv1.3' }, 'tlsv1.2, tlsv1.3', 'tlsv1.2, tlsv1.3'],
  [endpoint, { host: '::1', port: 1 }, '[::1]:1', '[::1]:1'],
])('A value is shown for people, and as the console shows it (%#)', (kind, value, shown, onConsole) => {
  expect([kind.show(value), kind.toIni(value)]).toEqual([shown, onConsole]);
});
