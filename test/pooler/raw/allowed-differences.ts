// What may differ between PostgreSQL and the pooler in front of it when tables and types change under prepared statements, and why.

/**
 * A statement has a parameter of a type that is gone. PostgreSQL looks its number up and fails (XX000). A server connection that
 * prepares the statement again fails to find the type by its name (42704), or finds another type of that name, which the old number does
 * not fit (42804, 42846). All of them refuse the statement.
 */
export function withoutLostType(line: string): string {
  return line.replace(/E ERROR (?:XX000|42704|42804|42846) .*/, 'E ERROR the type is gone');
}
