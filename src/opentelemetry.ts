/** `headgate/opentelemetry`: pools as OpenTelemetry metrics. */
export {
  type ObservablePool,
  type ObserveOptions,
  observePool,
  type PoolObservation,
} from './observe/opentelemetry.js';
