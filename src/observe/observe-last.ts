/** The last measurement of something that is no longer observed. */
import type {
  Attributes,
  BatchObservableCallback,
  BatchObservableResult,
  Meter,
  Observable,
} from '@opentelemetry/api';
import { soon } from '../runtime/soon.js';

interface Instruments<Stats> {
  readonly observables: Observable[];
  /** Reports zero for every level. */
  observeEnd(result: BatchObservableResult, last: Stats, attributes: Attributes): void;
}

/** Runs once, at the next collection. */
export function observeLast<Stats>(
  meter: Meter,
  instruments: Instruments<Stats>,
  last: Stats,
  attributes: Attributes,
): void {
  const { observables } = instruments;
  const observe: BatchObservableCallback = (result) => {
    instruments.observeEnd(result, last, attributes);
    // Deferred: the SDK is going through its list of callbacks.
    soon(() => meter.removeBatchObservableCallback(observe, observables));
  };
  meter.addBatchObservableCallback(observe, observables);
}
