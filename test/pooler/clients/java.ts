// Java and the JDBC driver of this machine.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { sayNotRun } from './programs.js';

const home = process.env['JAVA_HOME'];
export const java = home === undefined ? 'java' : join(home, 'bin', 'java');

/** The jar of the driver, or undefined where it or a JDK is missing, and then it is said. */
export function findJdbcDriver(): string | undefined {
  const driver = findDriver();
  if (driver !== undefined && hasJava()) return driver;
  sayNotRun(
    'the tests with JDBC, which need a JDK and the driver',
    'Debian: apt-get install default-jdk-headless libpostgresql-jdbc-java. Elsewhere, name the jar of the driver in HEADGATE_JDBC_JAR',
  );
  return undefined;
}

/** The driver: the one that is named, the distribution's, or the newest that Maven has once brought here. */
function findDriver(): string | undefined {
  const maven = join(homedir(), '.m2/repository/org/postgresql/postgresql');
  const versions = existsSync(maven) ? readdirSync(maven).sort(byVersion).reverse() : [];
  const candidates = [
    process.env['HEADGATE_JDBC_JAR'],
    '/usr/share/java/postgresql.jar',
    ...versions.map((version) => join(maven, version, `postgresql-${version}.jar`)),
  ];
  return candidates.find((file) => file !== undefined && existsSync(file));
}

function byVersion(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

/** Java that runs a program from its source, which takes a compiler. */
function hasJava(): boolean {
  const { status, stdout } = spawnSync(java, ['--list-modules'], { encoding: 'utf8' });
  return status === 0 && stdout.includes('jdk.compiler');
}
