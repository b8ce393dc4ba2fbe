// What OpenTelemetry has programs of ES modules preload.
import { register } from 'node:module';

register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
