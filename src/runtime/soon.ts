/**
 * `process.nextTick()` as Node has it. Tests replace it together with the timers, and a pool under test must still
 * answer: neither the function of the moment is used, nor the one found at the start if that is a fake already.
 */
import process from 'node:process';
import { isFake } from './fake-functions.js';

type Soon = <A extends unknown[]>(call: (...args: A) => unknown, ...args: A) => void;

/** Calls a function after the present callback, in the present async context. */
export let soon: Soon = isFake(process.nextTick) ? inMicrotask : process.nextTick;

/** Where this module is loaded while fakes are on. */
function inMicrotask<A extends unknown[]>(call: (...args: A) => unknown, ...args: A): void {
  if (!isFake(process.nextTick)) {
    soon = process.nextTick;
    soon(call, ...args);
    return;
  }
  void Promise.resolve().then(() => {
    call(...args);
  });
}
