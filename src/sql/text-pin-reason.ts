/**
 * Reasons in a text to pin a client where the server can't be asked: settings that no view lists, and functions that
 * change the session. A session check finds other leftovers. Missed ones are cleared away before the next client gets
 * the connection.
 */

import type { TextEffects } from './effects.js';
import type { PinReason } from './pin-reasons.js';
import { lastingSet } from './statements.js';

const loadPattern = /(?:^|;)\s*load\b/i;
const setConfigPattern = /\bset_config\b|\bpg_settings\b/i;
/** Within SQL that is in a string or in the body of a DO. */
const settingPattern = new RegExp(
  String.raw`(?:[;'$]|\b(?:BEGIN|THEN|ELSE|LOOP|EXECUTE)\b)\s*(?:${lastingSet}|RESET\b)`,
  'i',
);

/** For a text that is not known to be harmless. */
export function pinReasonOf(text: string, effects: TextEffects): PinReason | undefined {
  if (effects.mayLeaveHidden) return loadPattern.test(text) ? 'library_loaded' : 'session_function';
  if (!effects.mayHideSettings) return undefined;
  if (setConfigPattern.test(text)) return 'set_config';
  return settingPattern.test(text) ? 'setting_not_followed' : undefined;
}
