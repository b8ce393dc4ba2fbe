/** The times in a token: it is a presigned request, with the time of its signature and its life written in it. */

const timePattern = /[?&]X-Amz-Date=(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:&|$)/;
const lifePattern = /[?&]X-Amz-Expires=(\d{1,9})(?:&|$)/;

/** When a token ends, in milliseconds since 1970; undefined where it does not say. */
export function expiryOf(token: string): number | undefined {
  const time = timePattern.exec(token);
  const life = lifePattern.exec(token);
  if (time === null || life === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = time.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(life[1]) * 1_000;
}
