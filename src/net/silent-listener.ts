/** Hears nothing: the listener of a transport that has none yet, or none any more. */
import type { TransportListener } from './transport.js';

export const silentListener: TransportListener = Object.freeze({
  bytesCame() {},
  drained() {},
  ended() {},
  closed() {},
});
