/** Errors of the operating system in the shape in which Node gives them, for calls that Node does not make for us. */
import { getSystemErrorName } from 'node:util';

export function systemError(status: number, syscall: 'read' | 'write' | 'accept'): Error {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`${syscall} ${code}`), { errno: status, code, syscall });
}
