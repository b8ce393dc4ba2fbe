/** DSQL's conflict matrix, cell by cell: in both orders of statements and of COMMITs, and with the loser's statement after the winner's COMMIT. */
import { conflictSuite } from '../../dsql-suites/suites.js';
import { standIn } from '../../dsql-suites/target.js';

conflictSuite(standIn);
