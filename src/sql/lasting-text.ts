/**
 * Tells whether a plain statement means the same whenever it is parsed. A server turns the strings in a text into values
 * when it parses it: 'now' is the time of parsing, and 'int4'::regtype the type that had this name then. Code that
 * parses a text once and runs it often must not do so with such texts.
 *
 * Accepts only plain statements, which have neither comments nor backslashes nor strings in dollars. A false "no" costs
 * only time.
 */
import { Token, Tokenizer } from './tokenizer.js';

/**
 * As date and time types read them, with anything but letters around them: 'now()' is the time of parsing, too. A call of now()
 * is outside of strings, and runs anew each time.
 */
const moment = /(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])/i;

/** Types that are read as the names of things. Of regclass servers know by themselves when it is another one. */
const nameOfThing =
  /\breg(?:proc|procedure|oper|operator|type|role|namespace|config|dictionary|collation|database)\b/i;

/** A string that continues on the next line: the word may be in two parts. */
const stringInParts = /'\s+'/;

export function isLastingText(text: string): boolean {
  if (!text.includes("'")) return true;
  if (nameOfThing.test(text)) return false;
  const bytes = Buffer.from(text);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'unknown');
  for (let token = tokens.next(); token !== Token.end; token = tokens.next()) {
    if (token === Token.unreadable) return false;
    if (token !== Token.string) continue;
    const string = bytes.toString('latin1', tokens.start, tokens.end);
    if (moment.test(string) || stringInParts.test(string)) return false;
  }
  return true;
}
