/** A warning of the process, with a code by which programs can find it. */
export function warn(code: string, text: string): void {
  process.emitWarning(text, { type: 'HeadgateWarning', code });
}
