/** Functions that answer with promises, as a channel. */
import type { Answer, GiveUp, LeaseChannel } from './lease-channel.js';
import type { LeaseCall, LeaseFunctions } from './lease-functions.js';

type PromisedCall = (count: number, call: LeaseCall) => PromiseLike<unknown> | unknown;

export function promisedChannel({ acquire, release, cancel }: LeaseFunctions): LeaseChannel {
  return {
    acquire: (count, id, answer) =>
      begin(acquire, count, id, (reply) => {
        answer('error' in reply || typeof reply.value === 'boolean' ? reply : noBoolean(reply.value));
      }),
    release: (count, id, answer) => begin(release, count, id, answer),
    cancel: cancel && ((count, id, answer) => begin(cancel, count, id, answer)),
  };
}

function begin(call: PromisedCall, count: number, id: string, answer: Answer<never>): GiveUp {
  const controller = new AbortController();
  const promise = new Promise((resolve) => resolve(call(count, { id, signal: controller.signal })));
  promise.then(
    (value) => answer({ value: value as never }),
    (error: unknown) => answer({ error }),
  );
  return (reason) => controller.abort(reason);
}

function noBoolean(value: unknown): { readonly error: TypeError } {
  return { error: new TypeError(`it must answer true or false, but answered ${String(value)}`) };
}
