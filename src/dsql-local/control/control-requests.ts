/** Requests of the control interface, and their answers. */
import { PoolOptionsError } from '../../kernel/errors.js';
import type { FaultSettings } from '../faults.js';
import type { StatementReport } from '../report.js';

export interface ControlSource {
  /** Address, profile and connections. */
  status(): object;
  faults(): FaultSettings;
  /** Throws a `PoolOptionsError`. */
  setFaults(faults: unknown): void;
  report(): StatementReport;
  /** Closes all connections; answers how many there were. */
  drop(): number;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: object;
  /** With status 405: the methods that the path takes. */
  readonly allow?: readonly string[];
}

const paths: Readonly<Record<string, readonly string[]>> = {
  '/status': ['GET'],
  '/report': ['GET'],
  '/faults': ['GET', 'PUT', 'DELETE'],
  '/drop': ['POST'],
};

/** Undefined for a path that does not exist. */
export function methodsOf(path: string): readonly string[] | undefined {
  return Object.hasOwn(paths, path) ? paths[path] : undefined;
}

export function failure(status: number, error: string, more: object = {}): ControlAnswer {
  return { status, body: { error, ...more } };
}

/** The path takes the method. */
export function perform(method: string, path: string, body: string, source: ControlSource): ControlAnswer {
  if (path === '/status') {
    const { statements, refused, notKept } = source.report();
    return ok({ ...source.status(), faults: source.faults(), report: { statements, refused, notKept } });
  }
  if (path === '/report') return ok(source.report());
  if (path === '/drop') return ok({ dropped: source.drop() });
  if (method === 'PUT') return putFaults(body, source);
  if (method === 'DELETE') source.setFaults({});
  return ok({ faults: source.faults() });
}

function putFaults(body: string, source: ControlSource): ControlAnswer {
  let faults: unknown;
  try {
    faults = JSON.parse(body);
  } catch (error) {
    return failure(400, `The body is not JSON: ${(error as Error).message}`);
  }
  try {
    source.setFaults(faults);
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    return failure(400, error.message, { problems: error.problems });
  }
  return ok({ faults: source.faults() });
}

function ok(body: object): ControlAnswer {
  return { status: 200, body };
}
