/** Ignores all events: the listener of a transport before its own is set, or after it is removed. */
import type { TransportListener } from './transport.js';

export const silentListener: TransportListener = Object.freeze({
  bytesCame() {},
  drained() {},
  ended() {},
  closed() {},
});
