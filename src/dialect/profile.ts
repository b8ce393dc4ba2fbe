/** The day from which DSQL accepts each feature, and the profile of one day. */

/** Ordered by day. */
export const featureDays = {
  'numeric keys': '2026-02-03',
  'identity columns and sequences': '2026-02-13',
  'ALTER DEFAULT PRIVILEGES': '2026-04-24',
  'schema elements in CREATE SCHEMA': '2026-04-24',
  'ALTER ROLE RENAME': '2026-04-24',
  'ALTER ROUTINE': '2026-04-24',
  'json columns': '2026-05-04',
  'jsonb columns': '2026-06-08',
  'SET and DROP DEFAULT': '2026-07-06',
  'DROP NOT NULL': '2026-07-06',
  'DROP EXPRESSION': '2026-07-06',
  'ADD GENERATED AS IDENTITY': '2026-07-06',
  'DROP CONSTRAINT': '2026-07-06',
  'DROP COLUMN': '2026-08-03',
  'CHECK NOT VALID': '2026-08-03',
  'ALTER TABLE ASYNC': '2026-08-03',
  'expression indexes': '2026-08-13',
  'FOR UPDATE on any rows': '2026-08-24',
  'FOR KEY SHARE': '2026-08-25',
  'numeric precision up to 1000': '2026-08-25',
  'foreign keys': '2026-08-26',
  'extended statistics': '2026-08-27',
  'dsql.enable_batched_nestloop': '2026-09-11',
  'partial indexes': '2026-09-15',
} as const;

export type Feature = keyof typeof featureDays;

/** General availability. */
const oldestProfile = '2025-05-27';
const newestProfile = '2026-09-15';

export interface Profile {
  readonly day: string;
  accepts(feature: Feature): boolean;
}

/** Throws when `day` is no day `YYYY-MM-DD` from general availability on. */
export function createProfile(day: string = newestProfile): Profile {
  if (!isDay(day) || day < oldestProfile)
    throw new Error(
      `The profile of the DSQL dialect must be a day, YYYY-MM-DD, from ${oldestProfile} on, but is ${JSON.stringify(day)}. ` +
        `Leave it out for the newest, ${newestProfile}.`,
    );
  return { day, accepts: (feature) => day >= featureDays[feature] };
}

function isDay(text: string): boolean {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
