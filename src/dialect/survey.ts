/** Walks a statement's parse tree once, without recursion, and collects what rules about expressions and relations need. */
import type { ColumnRef, FuncCall, LockingClause, Node, RangeVar, SelectStmt, TypeName } from 'libpg-query';
import { bodiesOf, bodyOf } from './parse-tree.js';

export interface Lock {
  readonly clause: LockingClause;
  readonly select: SelectStmt;
}

export interface Survey {
  readonly functions: FuncCall[];
  readonly castTypes: TypeName[];
  readonly locks: Lock[];
  /** Relations outside of CTE names, in no order. */
  readonly relations: RangeVar[];
  /** Targets of INSERT, UPDATE, DELETE and COPY FROM. */
  readonly targets: Set<RangeVar>;
  /** Relations in FROM of a locking clause; CTEs included. */
  readonly locked: Set<RangeVar>;
  /** Columns with a schema: three parts or more. */
  readonly qualifiedColumns: ColumnRef[];
  /** INSERT, UPDATE or DELETE, also in a CTE. */
  isWrite: boolean;
  hasMerge: boolean;
  hasTableSample: boolean;
  /** SELECT INTO. */
  hasInto: boolean;
}

type Scope = ReadonlySet<string>;
type Tree = Readonly<Record<string, unknown>>;
interface Step {
  readonly value: unknown;
  /** Names of the CTEs that are visible. */
  readonly scope: Scope;
}

const noNames: Scope = new Set();

export function surveyStatement(node: Node): Survey {
  const survey: Survey = {
    functions: [],
    castTypes: [],
    locks: [],
    relations: [],
    targets: new Set(),
    locked: new Set(),
    qualifiedColumns: [],
    isWrite: false,
    hasMerge: false,
    hasTableSample: false,
    hasInto: false,
  };
  const steps: Step[] = [{ value: node, scope: noNames }];
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    const { value, scope } = step;
    if (typeof value !== 'object' || value === null) continue;
    if (Array.isArray(value)) for (const item of value) steps.push({ value: item, scope });
    else visit(value as Tree, scope, survey, steps);
  }
  return survey;
}

function visit(tree: Tree, outer: Scope, survey: Survey, steps: Step[]): void {
  if (isRangeVar(tree)) {
    if (isTable(tree, outer, survey)) survey.relations.push(tree);
    return;
  }
  const scope = 'withClause' in tree ? enterWith(tree['withClause'] as Tree, outer, steps) : outer;
  for (const [key, value] of Object.entries(tree)) {
    if (key === 'withClause' || key === 'lockedRels') continue;
    note(key, value as Tree, tree, survey);
    steps.push({ value, scope });
  }
}

function isRangeVar(tree: Tree): tree is Tree & RangeVar {
  return typeof tree['relname'] === 'string' && 'relpersistence' in tree;
}

/** Targets of changes are never CTEs. */
function isTable(range: RangeVar, scope: Scope, survey: Survey): boolean {
  return range.schemaname !== undefined || !scope.has(range.relname ?? '') || survey.targets.has(range);
}

/** A CTE sees those before it, and all of them in WITH RECURSIVE; the statement sees all. */
function enterWith(clause: Tree, outer: Scope, steps: Step[]): Scope {
  const expressions = bodiesOf(clause['ctes'] as Node[], 'CommonTableExpr');
  const all = new Set(outer);
  for (const { ctename } of expressions) all.add(ctename ?? '');
  let visible: Scope = clause['recursive'] === true ? all : outer;
  for (const expression of expressions) {
    steps.push({ value: expression, scope: visible });
    if (visible !== all) visible = new Set([...visible, expression.ctename ?? '']);
  }
  return all;
}

function note(key: string, value: Tree, parent: Tree, survey: Survey): void {
  switch (key) {
    case 'FuncCall':
    case 'funccall':
      survey.functions.push(value as FuncCall);
      break;
    case 'TypeCast':
      if (value['typeName']) survey.castTypes.push(value['typeName'] as TypeName);
      break;
    case 'ColumnRef':
      if (((value as ColumnRef).fields?.length ?? 0) > 2) survey.qualifiedColumns.push(value as ColumnRef);
      break;
    case 'InsertStmt':
    case 'UpdateStmt':
    case 'DeleteStmt':
      survey.isWrite = true;
      survey.targets.add(value['relation'] as RangeVar);
      break;
    case 'CopyStmt':
      if (value['is_from'] === true && value['relation']) survey.targets.add(value['relation'] as RangeVar);
      break;
    case 'MergeStmt':
      survey.hasMerge = true;
      break;
    case 'RangeTableSample':
      survey.hasTableSample = true;
      break;
    case 'intoClause':
      survey.hasInto = true;
      break;
    case 'lockingClause':
      for (const clause of bodiesOf(parent['lockingClause'] as Node[], 'LockingClause')) {
        survey.locks.push({ clause, select: parent as SelectStmt });
        markLocked(clause, parent as SelectStmt, survey);
      }
      break;
  }
}

/** Without OF, all relations of FROM are locked, those of its subqueries included. */
function markLocked(clause: LockingClause, select: SelectStmt, survey: Survey): void {
  const named = new Set(bodiesOf(clause.lockedRels, 'RangeVar').map(({ relname }) => relname));
  for (const range of rangesOf(select, named)) survey.locked.add(range);
}

/** Relations of FROM by alias or name; all of them when no name is given. */
export function rangesOf(select: SelectStmt, names: ReadonlySet<string | undefined> = new Set()): RangeVar[] {
  const found: RangeVar[] = [];
  const items: { node: Node | undefined; isNamed: boolean }[] = (select.fromClause ?? []).map((node) => ({
    node,
    isNamed: names.size === 0,
  }));
  for (let item = items.pop(); item !== undefined; item = items.pop()) {
    const { node, isNamed } = item;
    const range = bodyOf(node, 'RangeVar');
    if (range && (isNamed || names.has(range.alias?.aliasname ?? range.relname))) found.push(range);
    const join = bodyOf(node, 'JoinExpr');
    if (join) items.push({ node: join.larg, isNamed }, { node: join.rarg, isNamed });
    const subselect = bodyOf(node, 'RangeSubselect');
    if (subselect && (isNamed || names.has(subselect.alias?.aliasname)))
      for (const inner of bodyOf(subselect.subquery, 'SelectStmt')?.fromClause ?? [])
        items.push({ node: inner, isNamed: true });
  }
  return found;
}
