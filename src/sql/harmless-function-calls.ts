/** FunctionCall messages name a function by its number. The functions that libpq calls for large objects leave nothing in the session. */

/** Numbers are the same in all versions of PostgreSQL. Descriptors of large objects end with the transaction. */
const largeObjectFunctions: ReadonlySet<number> = new Set([
  715, // lo_create
  952, // lo_open
  953, // lo_close
  954, // loread
  955, // lowrite
  956, // lo_lseek
  957, // lo_creat
  958, // lo_tell
  964, // lo_unlink
  1004, // lo_truncate
  3170, // lo_lseek64
  3171, // lo_tell64
  3172, // lo_truncate64
]);

export function isHarmlessFunction(oid: number): boolean {
  return largeObjectFunctions.has(oid);
}
